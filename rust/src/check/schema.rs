//! Check the Parquet schema of a Variant column against VariantShredding.md.

use std::collections::HashSet;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::schema::types::Type;

use crate::parquet::schema::members;
use crate::parquet::variants::unknown_leaf;
use crate::shred::layout::is_legacy_column;
use crate::shred::schema::MAX_SCHEMA_DEPTH;
use crate::value::path::push_field;

/// One rule that the schema of a Variant column violates at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolation {
    pub rule: &'static str,
    pub path: String,
    pub message: String,
}

/// Return all violations in the group of a Variant column.
pub fn check_schema(group: &Type) -> Vec<SchemaViolation> {
    let mut check = Check { violations: Vec::new() };
    if !group.is_group() {
        check.add("P-S1", "$", "the column is not a group of `metadata`, `value` and `typed_value`");
        return check.violations;
    }
    if member(group, "metadata").is_none() && members(group).iter().any(|m| is_legacy_column(m.name())) {
        check.add("O1", "$", "the group is in the layout of the older Spark draft");
        return check.violations;
    }
    match group.get_basic_info().logical_type_ref() {
        Some(LogicalType::Variant(variant)) if !matches!(variant.specification_version, Some(1)) => {
            check.annotation(variant.specification_version)
        }
        Some(LogicalType::Variant(_)) => {}
        None => check.add("P-S2", "$", "the group has no annotation VARIANT(1)"),
        Some(_) => check.add("P-S2", "$", "the group has another annotation than VARIANT(1)"),
    }
    check.metadata(group);
    check.group(group, "$", true, 0);
    check.violations
}

struct Check {
    violations: Vec<SchemaViolation>,
}

impl Check {
    fn add(&mut self, rule: &'static str, path: &str, message: &str) {
        self.violations.push(SchemaViolation { rule, path: path.to_owned(), message: message.to_owned() });
    }

    fn annotation(&mut self, version: Option<i8>) {
        match version {
            Some(version) => {
                let message = format!("the annotation is VARIANT({version}), and only VARIANT(1) is known");
                self.violations.push(SchemaViolation { rule: "P-S2v", path: "$".into(), message });
            }
            None => self.add("P-S2v", "$", "the annotation VARIANT has no version, which Spark refuses"),
        }
    }

    fn metadata(&mut self, group: &Type) {
        match member(group, "metadata") {
            None => self.add("P-S1", "$", "the group has no `metadata`"),
            Some(metadata) if !is_bytes(metadata) => self.add("P-S1", "$", "`metadata` is not binary"),
            Some(metadata) if repetition(metadata) != Some(Repetition::REQUIRED) => {
                self.add("P-S1m", "$", "`metadata` is not required")
            }
            Some(_) => {}
        }
    }

    fn group(&mut self, group: &Type, path: &str, is_root: bool, depth: usize) {
        if depth > MAX_SCHEMA_DEPTH {
            return self.add("P-S9", path, "the shredding schema nests too deep");
        }
        self.names(group, path, is_root);
        let (value, typed) = (member(group, "value"), member(group, "typed_value"));
        if value.is_some_and(|value| !is_bytes(value)) {
            self.add("P-S1", path, "`value` is not binary");
        }
        match (value, typed) {
            (None, None) => self.add("P-S4", path, "there is neither a `value` nor a `typed_value`"),
            (None, Some(_)) => self.add(
                "P-S4v",
                path,
                "the group has `typed_value` but no `value`, so Spark derives no bounds",
            ),
            (Some(value), None) if is_root && repetition(value) != Some(Repetition::REQUIRED) => {
                self.add("P-S3o", path, "`value` is not required, and there is no `typed_value`")
            }
            _ => {}
        }
        if let Some(typed) = typed {
            self.typed_value(typed, path, depth);
        }
    }

    /// Report unknown columns; readers ignore those that begin with `_`.
    fn names(&mut self, group: &Type, path: &str, is_root: bool) {
        let mut seen = HashSet::new();
        for field in group.get_fields() {
            let name = field.name();
            if !seen.insert(name) {
                self.add("P-S10", path, &format!("two columns are called {name:?}"));
            }
            match name {
                "value" | "typed_value" => {}
                "metadata" if is_root => {}
                _ if name.starts_with('_') => {
                    self.add("P-X1", path, &format!("the column {name:?} is not part of a Variant group"))
                }
                _ => self.add("P-X2", path, &format!("the column {name:?} is not part of a Variant group")),
            }
        }
    }

    fn typed_value(&mut self, typed: &Type, path: &str, depth: usize) {
        let info = typed.get_basic_info();
        if repetition(typed) != Some(Repetition::OPTIONAL) {
            self.add("P-S1t", path, "`typed_value` is not optional");
        }
        if !typed.is_group() {
            if let Some(name) = unknown_leaf(typed) {
                self.add("P-S9", path, &format!("`typed_value` is {name}, which no Variant is shredded as"));
            }
            return;
        }
        match (info.logical_type_ref(), info.converted_type()) {
            (Some(LogicalType::List), _) | (None, ConvertedType::LIST) => self.list(typed, path, depth),
            (None, ConvertedType::NONE) => self.object(typed, path, depth),
            (Some(LogicalType::Variant(_)), _) => self.add("P-S9", path, "`typed_value` is itself a Variant"),
            _ => self.add("P-S9", path, "`typed_value` is a group that is neither an object nor a list"),
        }
    }

    fn object(&mut self, object: &Type, path: &str, depth: usize) {
        let mut seen = HashSet::new();
        for field in object.get_fields() {
            let mut field_path = path.to_owned();
            push_field(&mut field_path, field.name());
            if !seen.insert(field.name()) {
                self.add("P-S10", path, &format!("two shredded fields are called {:?}", field.name()));
            }
            if !field.is_group() {
                self.add("P-S9", &field_path, "a shredded field is not a group of `value` and `typed_value`");
                continue;
            }
            if repetition(field) != Some(Repetition::REQUIRED) {
                self.add("P-S7", &field_path, "the group of a shredded field is not required");
            }
            self.group(field, &field_path, false, depth + 1);
        }
    }

    fn list(&mut self, list: &Type, path: &str, depth: usize) {
        let element_path = format!("{path}[*]");
        let element = match list.get_fields() {
            [repeated] if repeated.is_group() && repetition(repeated) == Some(Repetition::REPEATED) => {
                match repeated.get_fields() {
                    [element] if element.is_group() => element,
                    _ => return self.add("P-S6", &element_path, "the list is not of three levels"),
                }
            }
            _ => return self.add("P-S6", &element_path, "the list is not of three levels"),
        };
        if repetition(element) != Some(Repetition::REQUIRED) {
            self.add("W10", &element_path, "the group of the elements is not required");
        }
        self.group(element, &element_path, false, depth + 1);
    }
}

fn member<'t>(group: &'t Type, name: &str) -> Option<&'t Type> {
    members(group).iter().find(|field| field.name() == name).map(AsRef::as_ref)
}

fn is_bytes(field: &Type) -> bool {
    field.is_primitive()
        && field.get_physical_type() == PhysicalType::BYTE_ARRAY
        && field.get_basic_info().logical_type_ref().is_none()
}

fn repetition(field: &Type) -> Option<Repetition> {
    let info = field.get_basic_info();
    info.has_repetition().then(|| info.repetition())
}
