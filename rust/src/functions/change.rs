//! `variant_insert`, `variant_set`, `variant_array_append`, `variant_delete` and `variant_strip_nulls`.

use std::borrow::Cow;

use arrow_array::StructArray;

use super::in_ranges;
use crate::error::{Error, ErrorKind, Result, each_row};
use crate::value::build::{NULL, Rows, Tree, names_of};
use crate::value::column::Variants;
use crate::value::path::{Step, normalized};
use crate::value::{MAX_DEPTH, MAX_SIZE, Value, too_deep};

/// The most elements of an array: each takes a byte, and three for its offset.
const MAX_ELEMENTS: usize = MAX_SIZE / 4;

/// What happens to the value at a path, as in the function of Spark with this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A new field, or an element before the one at an index.
    Insert,
    /// The field or element at the path, which is created if it is missing and `create` is set.
    Set { create: bool },
    /// A new element at the end of the array at the path; a missing array is not created.
    Append,
}

impl Change {
    fn creates(self) -> bool {
        matches!(self, Change::Insert | Change::Set { create: true })
    }
}

/// A value that is put at a path of others.
struct Placement<'p> {
    change: Change,
    path: &'p [Step],
}

impl Placement<'_> {
    /// Put `new` at the steps from `depth` on, which start at `tree`.
    fn apply<'a>(&self, tree: &mut Tree<'a>, depth: usize, new: Tree<'a>) -> Result<()> {
        let Some(step) = self.path.get(depth) else {
            return match (self.change, tree) {
                (Change::Append, Tree::Array(elements)) => {
                    elements.push(new);
                    Ok(())
                }
                (Change::Append, _) => Err(self.mismatch(depth)),
                (_, tree) => {
                    *tree = new;
                    Ok(())
                }
            };
        };
        let is_insert = self.change == Change::Insert && depth + 1 == self.path.len();
        match (step, tree) {
            (Step::Field(name), Tree::Object(fields)) => {
                match fields.binary_search_by(|(known, _)| known.as_ref().cmp(name)) {
                    Ok(_) if is_insert => Err(self.error(format!("the object already has a field {name:?}"))),
                    Ok(index) => self.apply(&mut fields[index].1, depth + 1, new),
                    Err(index) if self.change.creates() => {
                        fields.insert(index, (Cow::Owned(name.clone()), self.created(depth + 1, new)?));
                        Ok(())
                    }
                    Err(_) => Ok(()),
                }
            }
            (Step::Index(index), Tree::Array(elements)) => match elements.get_mut(*index) {
                Some(_) if is_insert => {
                    elements.insert(*index, new);
                    Ok(())
                }
                Some(element) => self.apply(element, depth + 1, new),
                None if self.change.creates() => {
                    self.fill(elements, *index)?;
                    elements.push(self.created(depth + 1, new)?);
                    Ok(())
                }
                None => Ok(()),
            },
            _ => Err(self.mismatch(depth)),
        }
    }

    /// Return the objects and arrays for the steps from `depth` on, with `new` at their end.
    fn created<'a>(&self, depth: usize, new: Tree<'a>) -> Result<Tree<'a>> {
        self.path[depth..].iter().rev().try_fold(new, |inner, step| match step {
            Step::Field(name) => Tree::object(vec![(Cow::Owned(name.clone()), inner)]),
            Step::Index(index) => {
                let mut elements = Vec::new();
                self.fill(&mut elements, *index)?;
                elements.push(inner);
                Ok(Tree::Array(elements))
            }
        })
    }

    /// Append Variant nulls up to `length` elements.
    fn fill(&self, elements: &mut Vec<Tree<'_>>, length: usize) -> Result<()> {
        if length >= MAX_ELEMENTS {
            return Err(self.error(format!("the Variant would be larger than {MAX_SIZE} bytes")));
        }
        elements.resize(length, NULL);
        Ok(())
    }

    fn mismatch(&self, depth: usize) -> Error {
        let kind = match self.path.get(depth) {
            Some(Step::Field(_)) => "object",
            Some(Step::Index(_)) | None => "array",
        };
        self.error(format!("expected an {kind} at {}", normalized(&self.path[..depth])))
    }

    fn error(&self, message: String) -> Error {
        Error::variant_path(message).at_path(&normalized(self.path))
    }
}

/// Put the Variants of `values` at `path` in `variants`, row by row; a row is null where one of both is.
///
/// A path that meets another kind of value, or a field that `variant_insert` finds there, is an error if `strict`,
/// and null otherwise.
pub fn change_rows(
    variants: &StructArray,
    path: &[Step],
    values: &StructArray,
    change: Change,
    strict: bool,
) -> Result<Vec<StructArray>> {
    if path.len() >= MAX_DEPTH {
        return Err(too_deep());
    }
    let (variants, values) = (Variants::new(variants)?, Variants::new(values)?);
    let placement = Placement { change, path };
    edited(&variants, |row, tree| {
        let Some((metadata, value)) = values.get(row)? else { return Ok(false) };
        match placement.apply(tree, 0, Tree::decode(&names_of(metadata)?, value, path.len())?) {
            Err(error) if !strict && error.kind() == ErrorKind::Path => Ok(false),
            applied => applied.map(|()| true),
        }
    })
}

/// Remove the values at `paths`, one after the other; a path that does not exist is ignored.
pub fn delete_rows(variants: &StructArray, paths: &[Vec<Step>]) -> Result<Vec<StructArray>> {
    edited(&Variants::new(variants)?, |_, tree| {
        paths.iter().for_each(|path| delete(tree, path));
        Ok(true)
    })
}

fn delete(tree: &mut Tree<'_>, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else { return };
    match (step, tree) {
        (Step::Field(name), Tree::Object(fields)) => {
            let found = fields.binary_search_by(|(known, _)| known.as_ref().cmp(name));
            match found {
                Ok(index) if rest.is_empty() => drop(fields.remove(index)),
                Ok(index) => delete(&mut fields[index].1, rest),
                Err(_) => {}
            }
        }
        (Step::Index(index), Tree::Array(elements)) if *index < elements.len() => match rest {
            [] => drop(elements.remove(*index)),
            _ => delete(&mut elements[*index], rest),
        },
        _ => {}
    }
}

/// Remove the fields, and with `arrays` the elements, that are Variant null, at all depths.
pub fn strip_nulls_rows(variants: &StructArray, arrays: bool) -> Result<Vec<StructArray>> {
    edited(&Variants::new(variants)?, |_, tree| {
        strip_nulls(tree, arrays);
        Ok(true)
    })
}

fn strip_nulls(tree: &mut Tree<'_>, arrays: bool) {
    let is_null = |tree: &Tree<'_>| matches!(tree, Tree::Scalar(Value::Null));
    match tree {
        Tree::Object(fields) => {
            fields.retain(|(_, value)| !is_null(value));
            fields.iter_mut().for_each(|(_, value)| strip_nulls(value, arrays));
        }
        Tree::Array(elements) => {
            elements.retain(|element| !(arrays && is_null(element)));
            elements.iter_mut().for_each(|element| strip_nulls(element, arrays));
        }
        Tree::Scalar(_) | Tree::Encoded(_) => {}
    }
}

/// Return the rows after `edit`, which returns whether the result has a value; SQL NULL stays.
fn edited<'a>(
    variants: &Variants<'a>,
    edit: impl Fn(usize, &mut Tree<'a>) -> Result<bool> + Sync,
) -> Result<Vec<StructArray>> {
    in_ranges(variants.len(), |rows| {
        let mut out = Rows::new(rows.len());
        each_row(rows, |row| {
            let Some((metadata, value)) = variants.get(row)? else { return out.push(None) };
            let mut tree = Tree::decode(&names_of(metadata)?, value, 0)?;
            let has_value = edit(row, &mut tree)?;
            out.push(has_value.then_some(&tree))
        })?;
        out.finish()
    })
}
