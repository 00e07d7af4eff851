//! The columns of a file under the names of a table.
//!
//! Delta on Spark and Delta Kernel find a column by its exact name, else without regard to case. A file that is opened
//! with the columns of its table gets their names, so that all other code compares names exactly.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::basic::Repetition;
use parquet::schema::types::{Type, TypePtr};

use super::schema::is_variant;
use super::schema::members;
use crate::error::{Error, Result};

/// The columns of a table, with the names of data files.
#[derive(Debug)]
pub struct TableColumns {
    pub fields: Fields,
    /// Whether fields with an id are found by it alone.
    pub by_id: bool,
}

/// A column for which a file has several.
#[derive(Debug)]
pub(super) struct Ambiguity {
    path: Vec<String>,
    names: Vec<String>,
}

impl Ambiguity {
    /// Return an error if the column at `path` is this column, contains it, or is contained in it.
    pub(super) fn check(&self, path: &[String]) -> Result<()> {
        if path.iter().zip(&self.path).any(|(one, other)| one != other) {
            return Ok(());
        }
        let names: Vec<String> = self.names.iter().map(|name| format!("{name:?}")).collect();
        let column = self.path.join(".");
        let message = format!(
            "cannot tell which column of the file is {column:?}, because {} have its name or its id; rewrite the \
             file with distinct names and ids",
            names.join(" and ")
        );
        Err(Error::data_file(message).in_column(&column))
    }
}

/// The schema of a file with the names of a table, and the columns that have none.
#[derive(Debug)]
pub(super) struct Renamed {
    pub(super) root: TypePtr,
    pub(super) ambiguous: Vec<Ambiguity>,
}

impl TableColumns {
    /// Give the columns of a file the names that the table has for them, at every depth, but not in Variants.
    pub(super) fn rename(&self, root: &TypePtr) -> Result<Renamed> {
        let mut search = Search { by_id: self.by_id, path: Vec::new(), ambiguous: Vec::new() };
        let children = search.fields(members(root), &self.fields)?;
        Ok(Renamed { root: with_children(root, root.name(), children)?, ambiguous: search.ambiguous })
    }
}

struct Search {
    by_id: bool,
    path: Vec<String>,
    ambiguous: Vec<Ambiguity>,
}

impl Search {
    /// The members of a group, each with the name of its field in `fields`.
    fn fields(&mut self, stored: &[TypePtr], fields: &Fields) -> Result<Vec<TypePtr>> {
        let found = self.find(stored, fields);
        let mut names: HashSet<String> = fields.iter().map(|field| field.name().clone()).collect();
        let renamed = stored.iter().zip(found).map(|(member, field)| match field {
            Some(field) => self.field(member, field.name(), field),
            None if names.contains(member.name()) => {
                let name = unused_name(member.name(), &names);
                let renamed = with_children(member, &name, members(member).to_vec());
                names.insert(name);
                renamed
            }
            None => Ok(member.clone()),
        });
        renamed.collect()
    }

    /// The field of each member, if it has one.
    fn find<'f>(&mut self, stored: &[TypePtr], fields: &'f Fields) -> Vec<Option<&'f Field>> {
        let mut found = vec![None; stored.len()];
        if !self.by_id && stored.len() == fields.len() && stored.iter().zip(fields).all(has_name_of) {
            return fields.iter().map(|field| Some(field.as_ref())).collect();
        }
        let positions = |key: fn(&Type) -> Option<String>| {
            let mut positions: HashMap<String, Vec<usize>> = HashMap::new();
            for (position, member) in stored.iter().enumerate() {
                if let Some(key) = key(member) {
                    positions.entry(key).or_default().push(position);
                }
            }
            positions
        };
        let by_id = positions(|member| {
            let info = member.get_basic_info();
            info.has_id().then(|| info.id().to_string())
        });
        let exact = positions(|member| Some(member.name().to_owned()));
        let mut others = Vec::new();
        for field in fields {
            let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY).filter(|_| self.by_id);
            let position = match id {
                Some(id) => by_id.get(id),
                None => exact.get(field.name()),
            };
            match position {
                Some(positions) => self.take(positions, stored, field, &mut found),
                None if id.is_none() => others.push(field),
                None => {}
            }
        }
        if others.is_empty() {
            return found;
        }
        let lowered = positions(|member| Some(member.name().to_lowercase()));
        for field in others {
            let alike = lowered.get(&field.name().to_lowercase()).into_iter().flatten();
            let alike: Vec<usize> = alike.copied().filter(|position| found[*position].is_none()).collect();
            self.take(&alike, stored, field, &mut found);
        }
        found
    }

    /// Note the one member that a field is found by, or that there are several.
    fn take<'f>(
        &mut self,
        positions: &[usize],
        stored: &[TypePtr],
        field: &'f Field,
        found: &mut [Option<&'f Field>],
    ) {
        match positions {
            [] => {}
            [position] => found[*position] = Some(field),
            several => {
                let mut path = self.path.clone();
                path.push(field.name().clone());
                let names = several.iter().map(|position| stored[*position].name().to_owned());
                self.ambiguous.push(Ambiguity { path, names: names.collect() });
            }
        }
    }

    fn field(&mut self, stored: &TypePtr, name: &str, field: &Field) -> Result<TypePtr> {
        self.path.push(field.name().clone());
        let children = self.children(stored, field)?;
        self.path.pop();
        with_children(stored, name, children)
    }

    /// The members of the type of a field. Lists and maps are in any of the layouts of LogicalTypes.md.
    fn children(&mut self, stored: &TypePtr, field: &Field) -> Result<Vec<TypePtr>> {
        let children = members(stored);
        match (field.data_type(), children) {
            (DataType::Struct(fields), _) if !is_variant(field) => self.fields(children, fields),
            (DataType::List(element) | DataType::LargeList(element), _) if is_repeated(stored) => {
                self.children(stored, element)
            }
            (DataType::List(element) | DataType::LargeList(element), [repeated]) => {
                Ok(vec![match members(repeated) {
                    [item] if !is_element(stored, repeated) => {
                        let item = self.field(item, item.name(), element)?;
                        with_children(repeated, repeated.name(), vec![item])?
                    }
                    _ => self.field(repeated, repeated.name(), element)?,
                }])
            }
            (DataType::Map(entries, _), [repeated]) => match (entries.data_type(), members(repeated)) {
                (DataType::Struct(pair), [key, value]) if pair.len() == 2 => {
                    let key = self.field(key, key.name(), &pair[0])?;
                    let value = self.field(value, value.name(), &pair[1])?;
                    Ok(vec![with_children(repeated, repeated.name(), vec![key, value])?])
                }
                _ => Ok(children.to_vec()),
            },
            _ => Ok(children.to_vec()),
        }
    }
}

fn has_name_of((member, field): (&TypePtr, &Arc<Field>)) -> bool {
    member.name() == field.name()
}

fn is_repeated(stored: &Type) -> bool {
    let info = stored.get_basic_info();
    info.has_repetition() && info.repetition() == Repetition::REPEATED
}

/// Whether the repeated group of a list is the element itself (LogicalTypes.md, "Backward-compatibility rules").
fn is_element(list: &Type, repeated: &Type) -> bool {
    repeated.name() == "array" || repeated.name() == format!("{}_tuple", list.name())
}

/// A new name for a column whose name another column has.
fn unused_name(name: &str, names: &HashSet<String>) -> String {
    let mut unused = format!("{name}#");
    while names.contains(&unused) {
        unused.push('#');
    }
    unused
}

/// Return `stored` with another name and other members, or itself if it has them.
pub(super) fn with_children(stored: &TypePtr, name: &str, children: Vec<TypePtr>) -> Result<TypePtr> {
    let is_same = members(stored).iter().zip(&children).all(|(one, other)| Arc::ptr_eq(one, other));
    if is_same && stored.name() == name {
        return Ok(stored.clone());
    }
    let info = stored.get_basic_info();
    let id = info.has_id().then(|| info.id());
    let logical = info.logical_type_ref().cloned();
    if let Type::PrimitiveType { physical_type, type_length, scale, precision, .. } = stored.as_ref() {
        let primitive = Type::primitive_type_builder(name, *physical_type)
            .with_repetition(info.repetition())
            .with_converted_type(info.converted_type())
            .with_logical_type(logical)
            .with_length(*type_length)
            .with_precision(*precision)
            .with_scale(*scale)
            .with_id(id);
        return Ok(Arc::new(primitive.build()?));
    }
    let mut group = Type::group_type_builder(name)
        .with_converted_type(info.converted_type())
        .with_logical_type(logical)
        .with_fields(children)
        .with_id(id);
    if info.has_repetition() {
        group = group.with_repetition(info.repetition());
    }
    Ok(Arc::new(group.build()?))
}
