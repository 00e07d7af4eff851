//! Paths into a Variant.

use super::{Metadata, Value};
use crate::error::Result;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// The field of an object.
    Field(String),
    /// The element of an array, from 0.
    Index(usize),
}

/// Return the bytes of the value at `path`; `None` if a step meets a missing field or element, or another kind.
pub fn get<'v>(metadata: &Metadata<'_>, value: &'v [u8], path: &[Step]) -> Result<Option<&'v [u8]>> {
    let mut value = value;
    for step in path {
        let next = match (step, Value::decode(value)?) {
            (Step::Field(name), Value::Object(object)) => object.get(metadata, name)?,
            (Step::Index(index), Value::Array(array)) if *index < array.len() => Some(array.element(*index)?),
            _ => None,
        };
        let Some(next) = next else { return Ok(None) };
        value = next;
    }
    Ok(Some(value))
}

/// Return `path` as a normalized path (RFC 9535), as errors show it: `$['a'][0]`.
pub fn normalized(path: &[Step]) -> String {
    let mut text = String::from("$");
    for step in path {
        match step {
            Step::Field(name) => push_field(&mut text, name),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// Append the normalized step to the field called `name` (RFC 9535, section 2.7).
pub(crate) fn push_field(text: &mut String, name: &str) {
    text.push_str("['");
    for character in name.chars() {
        match character {
            '\'' => text.push_str("\\'"),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            '\0'..=' ' if character != ' ' => text.push_str(&format!("\\u{:04x}", character as u32)),
            _ => text.push(character),
        }
    }
    text.push_str("']");
}
