//! Extract single values from many JSON texts by the names that lead to them. Other values are skipped.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef, StringArray};

use super::scan::{Scan, Text, error, skip_space, string};

/// The maximum nesting depth of skipped values.
const MAX_DEPTH: usize = 1000;

/// The kind of JSON value that a column takes. A value of another kind counts as absent: statistics that have text
/// where a number belongs, or a number where text belongs, are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Number,
    Text,
    Boolean,
}

/// The requested names below one object, as a tree.
#[derive(Debug, Default)]
struct Wanted {
    names: Vec<(String, Wanted)>,
    /// The column that takes the value itself.
    column: Option<usize>,
}

impl Wanted {
    fn insert(&mut self, path: &[String], column: usize) {
        match path {
            [] => self.column = Some(column),
            [name, rest @ ..] => {
                let position = self.names.iter().position(|(known, _)| known == name);
                let position = position.unwrap_or_else(|| {
                    self.names.push((name.clone(), Wanted::default()));
                    self.names.len() - 1
                });
                self.names[position].1.insert(rest, column);
            }
        }
    }

    /// Remove the values found here: the last value of a name counts.
    fn clear(&self, found: &mut [Found]) {
        if let Some(column) = self.column {
            found[column] = Found::Nothing;
        }
        self.names.iter().for_each(|(_, below)| below.clear(found));
    }
}

/// Where each wanted value of one text is; the last of two with one name counts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Nothing,
    /// The range of a number or literal in the text.
    Token(usize, usize),
    Text(String),
}

/// Return one column of text for each of `paths`, which differ: the string, the digits of the number or the literal
/// there. Null stands for a missing value, one of another kind, and text that is not JSON.
pub fn json_leaves(texts: &StringArray, paths: &[(Vec<String>, Kind)]) -> Vec<ArrayRef> {
    let mut wanted = Wanted::default();
    paths.iter().enumerate().for_each(|(column, (path, _))| wanted.insert(path, column));
    let mut columns: Vec<StringBuilder> = paths.iter().map(|_| StringBuilder::new()).collect();
    let mut reader = Reader { found: vec![Found::Nothing; paths.len()], scratch: Vec::new() };
    for row in 0..texts.len() {
        reader.found.fill(Found::Nothing);
        let text = if texts.is_valid(row) { texts.value(row) } else { "" };
        let is_json = reader.read(text.as_bytes(), &wanted).is_ok();
        for ((column, found), (_, kind)) in columns.iter_mut().zip(&reader.found).zip(paths) {
            match (found, kind) {
                (Found::Token(start, end), kind) if is_json => {
                    column.append_option(text.get(*start..*end).filter(|token| kind.is_of(token)))
                }
                (Found::Text(value), Kind::Text) if is_json => column.append_value(value),
                _ => column.append_null(),
            }
        }
    }
    columns.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef).collect()
}

impl Kind {
    /// Return whether a number or literal is of this kind. The `NaN` that some writers print is of none.
    fn is_of(self, token: &str) -> bool {
        match self {
            Kind::Number => token.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit()),
            Kind::Boolean => token == "true" || token == "false",
            Kind::Text => false,
        }
    }
}

struct Reader {
    found: Vec<Found>,
    scratch: Vec<u8>,
}

impl Reader {
    fn read(&mut self, text: &[u8], wanted: &Wanted) -> Scan<()> {
        let mut at = skip_space(text, 0);
        self.value(text, &mut at, Some(wanted), 0)?;
        match skip_space(text, at) == text.len() {
            true => Ok(()),
            false => error(at, "there is more text after the value"),
        }
    }

    fn value(&mut self, text: &[u8], at: &mut usize, wanted: Option<&Wanted>, depth: usize) -> Scan<()> {
        if depth > MAX_DEPTH {
            return error(*at, "the text nests too deeply");
        }
        if let Some(wanted) = wanted {
            wanted.clear(&mut self.found);
        }
        let column = wanted.and_then(|wanted| wanted.column);
        let start = *at;
        let found = match text.get(*at) {
            Some(b'{') => self.object(text, at, wanted, depth).map(|()| Found::Nothing)?,
            Some(b'[') => self.array(text, at, depth).map(|()| Found::Nothing)?,
            Some(b'"') => {
                *at += 1;
                match string(text, at, &mut self.scratch)? {
                    _ if column.is_none() => Found::Nothing,
                    Text::Plain(bytes) => text_of(bytes, start)?,
                    Text::Unescaped => text_of(&self.scratch, start)?,
                }
            }
            _ => {
                token(text, at)?;
                if &text[start..*at] == b"null" { Found::Nothing } else { Found::Token(start, *at) }
            }
        };
        if let Some(column) = column {
            self.found[column] = found;
        }
        Ok(())
    }

    fn object(&mut self, text: &[u8], at: &mut usize, wanted: Option<&Wanted>, depth: usize) -> Scan<()> {
        *at = skip_space(text, *at + 1);
        if text.get(*at) == Some(&b'}') {
            *at += 1;
            return Ok(());
        }
        loop {
            if text.get(*at) != Some(&b'"') {
                return error(*at, "a name is missing");
            }
            *at += 1;
            let name = match string(text, at, &mut self.scratch)? {
                Text::Plain(bytes) => bytes,
                Text::Unescaped => self.scratch.as_slice(),
            };
            let below = wanted.and_then(|wanted| {
                wanted.names.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, below)| below)
            });
            *at = skip_space(text, *at);
            if text.get(*at) != Some(&b':') {
                return error(*at, "a colon is missing");
            }
            *at = skip_space(text, *at + 1);
            self.value(text, at, below, depth + 1)?;
            if !next_member(text, at, b'}')? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, text: &[u8], at: &mut usize, depth: usize) -> Scan<()> {
        *at = skip_space(text, *at + 1);
        if text.get(*at) == Some(&b']') {
            *at += 1;
            return Ok(());
        }
        loop {
            self.value(text, at, None, depth + 1)?;
            if !next_member(text, at, b']')? {
                return Ok(());
            }
        }
    }
}

/// Step over the separator after a member. Return whether another member follows, which then starts at `*at`.
fn next_member(text: &[u8], at: &mut usize, end: u8) -> Scan<bool> {
    *at = skip_space(text, *at);
    match text.get(*at) {
        Some(b',') => {
            *at = skip_space(text, *at + 1);
            Ok(true)
        }
        Some(byte) if *byte == end => {
            *at += 1;
            Ok(false)
        }
        _ => error(*at, "a comma is missing"),
    }
}

fn token(text: &[u8], at: &mut usize) -> Scan<()> {
    let start = *at;
    while text.get(*at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)) {
        *at += 1;
    }
    if *at == start { error(start, "a value is missing") } else { Ok(()) }
}

fn text_of(bytes: &[u8], at: usize) -> Scan<Found> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Found::Text(text.to_owned())),
        Err(_) => error(at, "a string is not UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    fn leaf_of(kind: Kind, texts: &[Option<&str>], path: &[&str]) -> Vec<Option<String>> {
        let path = path.iter().map(|name| name.to_string()).collect();
        let columns = json_leaves(&texts.iter().copied().collect(), &[(path, kind)]);
        columns[0].as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect()
    }

    fn leaf(texts: &[Option<&str>], path: &[&str]) -> Vec<Option<String>> {
        leaf_of(Kind::Number, texts, path)
    }

    #[test]
    fn values_are_found_by_their_path() {
        let text = r#" {"a": {"b": "x\n", "c": [1, {"b": 2}]}, "b": -1.50e3, "t": true, "n": null} "#;
        assert_eq!(leaf_of(Kind::Text, &[Some(text)], &["a", "b"]), [Some("x\n".into())]);
        assert_eq!(leaf(&[Some(text)], &["b"]), [Some("-1.50e3".into())]);
        for absent in [&["n"][..], &["a"], &["a", "c"], &["x"], &["b", "x"], &[]] {
            assert_eq!(leaf(&[Some(text)], absent), [None], "{absent:?}");
            assert_eq!(leaf_of(Kind::Text, &[Some(text)], absent), [None], "{absent:?}");
        }
    }

    #[test]
    fn a_value_of_another_kind_is_absent() {
        for (text, kind, value) in [
            (r#"{"a": 3}"#, Some(Kind::Number), "3"),
            (r#"{"a": -3.5e1}"#, Some(Kind::Number), "-3.5e1"),
            (r#"{"a": "3"}"#, Some(Kind::Text), "3"),
            (r#"{"a": "true"}"#, Some(Kind::Text), "true"),
            (r#"{"a": true}"#, Some(Kind::Boolean), "true"),
            (r#"{"a": false}"#, Some(Kind::Boolean), "false"),
            (r#"{"a": truer}"#, None, ""),
            (r#"{"a": NaN}"#, None, ""),
            (r#"{"a": -Infinity}"#, None, ""),
        ] {
            for asked in [Kind::Number, Kind::Text, Kind::Boolean] {
                let expected = (kind == Some(asked)).then(|| value.to_owned());
                assert_eq!(leaf_of(asked, &[Some(text)], &["a"]), [expected], "{text} as {asked:?}");
            }
        }
    }

    #[test]
    fn the_last_of_duplicate_names_wins() {
        assert_eq!(
            leaf(&[Some(r#"{"a": 1, "a": 2}"#), Some(r#"{"a": 1, "a": null}"#)], &["a"]),
            [Some("2".into()), None]
        );
        assert_eq!(leaf(&[Some(r#"{"a": {"b": 1}, "a": {"c": 2}}"#)], &["a", "b"]), [None]);
    }

    #[test]
    fn a_text_that_is_not_json_has_no_values() {
        for text in
            ["", "{", r#"{"a": 1"#, r#"{"a": 1}}"#, r#"{"a" 1}"#, r#"{"a": }"#, r#"{a: 1}"#, r#"{"a": "x}"#]
        {
            assert_eq!(
                leaf(&[Some(text), None, Some(r#"{"a": 7}"#)], &["a"]),
                [None, None, Some("7".into())],
                "{text}"
            );
        }
        let deep = format!(r#"{{"a": 1, "b": {}{}}}"#, "[".repeat(2000), "]".repeat(2000));
        assert_eq!(leaf(&[Some(&deep)], &["a"]), [None]);
    }
}
