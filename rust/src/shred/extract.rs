//! `variant_get` on a shredded column: a path read from the columns that hold it, without rebuilding values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Fields};

use super::layout::{Group, Layout, Typed};
use super::reader::{OnConflict, conflict};
use super::shapes::Shapes;
use super::unshred::unshred_as;
use crate::error::{Error, Result, each_row};
use crate::value::cast::{CastBuilder, Casting, cast_array, shows_names};
use crate::value::column::{Bytes, is_text_dictionary, leaf_count};
use crate::value::metadata::{EMPTY, Metadata};
use crate::value::path::{self, Step};
use crate::value::sql_type::{is_variant, sql_name};

/// The leaf columns that a path needs, as positions among all leaf columns of the group, depth first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededLeaves {
    /// The leaves that are always needed, at least one.
    pub leaves: Vec<usize>,
    /// `metadata`, if it may be needed: [`needs_metadata`] decides after the other leaves are read.
    pub metadata: Option<usize>,
}

/// Return which leaf columns of a group with these fields [`extract`] needs for `path` and `target`.
///
/// A shredded path needs its own `value` and `typed_value`, and no `value` above them: readers may assume that
/// `value` does not hold an object where `typed_value` is an object (VariantShredding.md, "Reading").
pub fn leaves_needed(fields: &Fields, path: &[Step], target: &DataType) -> Result<NeededLeaves> {
    let layout = Layout::parse(fields)?;
    let metadata = layout.metadata.map(|position| leaves_before(fields, position));
    let (group, fields, first, rest) = locate(&layout.group, fields, path);
    let mut leaves = Vec::new();
    push_value(group, fields, first, &mut leaves);
    if rest.is_empty() {
        push_typed_value(group, fields, first, target, &mut leaves);
    }
    leaves.sort_unstable();
    let may_need_names = shows_names(target) || rest.iter().any(|step| matches!(step, Step::Field(_)));
    if leaves.is_empty() || is_variant(target) {
        leaves.extend(metadata);
        leaves.sort_unstable();
        return Ok(NeededLeaves { leaves, metadata: None });
    }
    Ok(NeededLeaves { leaves, metadata: metadata.filter(|_| may_need_names || is_list(target)) })
}

fn push_value(group: &Group, fields: &Fields, first: usize, leaves: &mut Vec<usize>) {
    leaves.extend(group.value.iter().map(|&position| first + leaves_before(fields, position)));
}

/// Append the leaves of `typed_value` that a cast to `target` needs. A cast to a struct needs only its own fields.
fn push_typed_value(
    group: &Group,
    fields: &Fields,
    first: usize,
    target: &DataType,
    leaves: &mut Vec<usize>,
) {
    let Some((position, typed)) = &group.typed_value else { return };
    let start = first + leaves_before(fields, *position);
    let data_type = fields[*position].data_type();
    let before = leaves.len();
    match (typed, target, data_type) {
        (Typed::Object(shredded), DataType::Struct(wanted), DataType::Struct(children))
            if !is_variant(target) =>
        {
            for field in shredded {
                let Some((_, part)) = wanted.find(&field.name) else { continue };
                let first = start + leaves_before(children, field.position);
                let Some(fields) = struct_fields(children[field.position].data_type()) else { continue };
                push_value(&field.group, fields, first, leaves);
                push_typed_value(&field.group, fields, first, part.data_type(), leaves);
            }
        }
        (Typed::List(element), DataType::List(part), DataType::List(item) | DataType::LargeList(item)) => {
            if let Some(fields) = struct_fields(item.data_type()) {
                push_value(element, fields, start, leaves);
                push_typed_value(element, fields, start, part.data_type(), leaves);
            }
        }
        _ if matches!(typed, Typed::Leaf(_)) || shows_names(target) || is_list(target) => {
            leaves.extend(start..start + leaf_count(data_type));
        }
        _ => {}
    }
    // Any column in an object or array shows whether it is present.
    if leaves.len() == before {
        leaves.push(start);
    }
}

/// The leaf columns of a shredded path, as positions among all leaf columns of the group, depth first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShreddedLeaf {
    pub typed_value: usize,
    pub value: Option<usize>,
}

/// The leaf columns that hold the values at `path`; `None` unless it leads through objects to a column of scalars.
pub fn shredded_leaf(fields: &Fields, path: &[Step]) -> Result<Option<ShreddedLeaf>> {
    let layout = Layout::parse(fields)?;
    let (group, fields, first, rest) = locate(&layout.group, fields, path);
    let is_reached = rest.is_empty() && path.iter().all(|step| matches!(step, Step::Field(_)));
    Ok(match &group.typed_value {
        Some((position, Typed::Leaf(_))) if is_reached => Some(ShreddedLeaf {
            typed_value: first + leaves_before(fields, *position),
            value: group.value.map(|position| first + leaves_before(fields, position)),
        }),
        _ => None,
    })
}

fn is_list(target: &DataType) -> bool {
    matches!(target, DataType::List(_))
}

/// Follow `path` as far as it is shredded. Return the group, its fields, its first leaf and the remaining steps.
fn locate<'a>(
    mut group: &'a Group,
    mut fields: &'a Fields,
    path: &'a [Step],
) -> (&'a Group, &'a Fields, usize, &'a [Step]) {
    let mut first = 0;
    for (index, step) in path.iter().enumerate() {
        let Some((position, next)) = shredded_step(group, step) else {
            return (group, fields, first, &path[index..]);
        };
        first += leaves_before(fields, position);
        match (fields[position].data_type(), &next) {
            (DataType::Struct(children), (Some(child), _)) => {
                first += leaves_before(children, *child);
                fields = struct_fields(children[*child].data_type()).unwrap_or(fields);
            }
            (DataType::List(element) | DataType::LargeList(element), _) => {
                fields = struct_fields(element.data_type()).unwrap_or(fields);
            }
            _ => {}
        }
        group = next.1;
    }
    (group, fields, first, &[])
}

/// Where `step` leads when it is shredded: `typed_value`, the field in it (none in a list), and its group.
fn shredded_step<'a>(group: &'a Group, step: &Step) -> Option<(usize, (Option<usize>, &'a Group))> {
    let (position, typed) = group.typed_value.as_ref()?;
    match (step, typed) {
        (Step::Field(name), Typed::Object(fields)) => {
            let field = fields.iter().find(|field| field.name == *name)?;
            Some((*position, (Some(field.position), &field.group)))
        }
        (Step::Index(_), Typed::List(element)) => Some((*position, (None, element))),
        _ => None,
    }
}

fn struct_fields(data_type: &DataType) -> Option<&Fields> {
    match data_type {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

fn leaves_before(fields: &Fields, position: usize) -> usize {
    fields.iter().take(position).map(|field| leaf_count(field.data_type())).sum()
}

/// Whether [`extract`] needs `metadata` for a group that was read without it.
pub fn needs_metadata(group: &StructArray, path: &[Step], target: &DataType) -> Result<bool> {
    let layout = Layout::parse_projected(group.fields())?;
    let selection = Selection::find(group, &layout, path)?;
    let is_nested = matches!(selection.layout.typed_value, Some((_, Typed::Object(_) | Typed::List(_))));
    let names_shown = shows_names(target) || is_list(target);
    if is_variant(target) || selection.rest.is_empty() && is_nested && names_shown {
        return Ok(true);
    }
    let Some(values) = selection.values()? else { return Ok(false) };
    let has_names = names_shown || selection.has_names_left();
    // Basic types 2 and 3 are object and array.
    let is_nested = |bytes: &[u8]| bytes.first().is_some_and(|header| header & 0b10 != 0);
    Ok(has_names && (0..group.len()).any(|row| values.get(row).is_some_and(is_nested)))
}

/// The values at `path` cast to `target` by the rules of [`CastBuilder`], null where a step finds nothing.
///
/// `group` may lack every column but those of [`leaves_needed`]. Errors name row and path.
pub fn extract(
    group: &StructArray,
    path: &[Step],
    target: &DataType,
    casting: &Casting,
    on_conflict: OnConflict,
) -> Result<ArrayRef> {
    let extracted = extract_at(group, path, target, casting, on_conflict);
    match path {
        [] => extracted,
        _ => extracted.map_err(|error| error.at_path(&path::normalized(path))),
    }
}

fn extract_at(
    group: &StructArray,
    path: &[Step],
    target: &DataType,
    casting: &Casting,
    on_conflict: OnConflict,
) -> Result<ArrayRef> {
    let layout = Layout::parse_projected(group.fields())?;
    let selection = Selection::find(group, &layout, path)?;
    let request = Request { target, casting, on_conflict };
    match &selection.layout.typed_value {
        _ if !selection.rest.is_empty() => selection.cast_values(&request, &selection.valid_rows()),
        None if is_variant(target) => selection.rebuild(&request),
        None => selection.cast_values(&request, &selection.valid_rows()),
        Some((position, Typed::Leaf(_))) if !is_variant(target) => selection.cast_leaf(*position, &request),
        Some((position, _)) if !shows_names(target) && !is_list(target) => {
            selection.cast_unshredded_scalars(*position, &request)
        }
        Some(_) => selection.rebuild(&request),
    }
}

/// The text at `path` as the column that holds it stores it, as dictionaries; `None` if it may be elsewhere, too.
pub fn stored_text(group: &StructArray, path: &[Step]) -> Result<Option<ArrayRef>> {
    let layout = Layout::parse_projected(group.fields())?;
    let selection = Selection::find(group, &layout, path)?;
    match &selection.layout.typed_value {
        Some((position, Typed::Leaf(_))) if selection.rest.is_empty() => {
            let typed = selection.group.column(*position);
            let is_alone = is_text_dictionary(typed.data_type()) && selection.rows_of_values()?.is_empty();
            is_alone.then(|| with_nulls(typed, selection.nulls.as_ref())).transpose()
        }
        _ => Ok(None),
    }
}

/// How to cast the values at a path.
struct Request<'a> {
    target: &'a DataType,
    casting: &'a Casting,
    on_conflict: OnConflict,
}

/// The group that a path leads to as far as it is shredded, row by row.
struct Selection<'a> {
    group: StructArray,
    layout: &'a Group,
    /// Rows without this group: SQL NULL, or missing on the path.
    nulls: Option<NullBuffer>,
    metadata: Option<&'a ArrayRef>,
    /// The remaining steps, within `value`.
    rest: &'a [Step],
    /// Whether the last step was into an object, where both columns null means missing; else Variant null.
    is_field: bool,
}

impl<'a> Selection<'a> {
    fn find(group: &'a StructArray, layout: &'a Layout, path: &'a [Step]) -> Result<Self> {
        let mut selection = Selection {
            group: group.clone(),
            layout: &layout.group,
            nulls: group.nulls().cloned(),
            metadata: layout.metadata.map(|position| group.column(position)),
            rest: path,
            is_field: false,
        };
        while let [step, rest @ ..] = selection.rest
            && let Some((position, (field, group))) = shredded_step(selection.layout, step)
        {
            let typed = selection.group.column(position).clone();
            selection.nulls = NullBuffer::union(selection.nulls.as_ref(), typed.nulls());
            match (field, step) {
                (Some(field), _) => selection.enter(typed.as_struct().column(field).as_struct().clone()),
                (None, Step::Index(index)) => selection.enter_element(typed.as_ref(), *index)?,
                (None, Step::Field(_)) => {}
            }
            (selection.layout, selection.rest, selection.is_field) = (group, rest, field.is_some());
        }
        Ok(selection)
    }

    fn enter(&mut self, group: StructArray) {
        self.nulls = NullBuffer::union(self.nulls.as_ref(), group.nulls());
        self.group = group;
    }

    /// Take the element at `index` of each row's list.
    fn enter_element(&mut self, lists: &dyn Array, index: usize) -> Result<()> {
        let is_valid = |row| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let element = |row: usize, start: i64, end: i64| {
            let position = i64::try_from(index).ok().and_then(|index| start.checked_add(index));
            position.filter(|&position| is_valid(row) && position < end)
        };
        let (positions, elements): (Int64Array, _) = if let DataType::LargeList(_) = lists.data_type() {
            let lists = lists.as_list::<i64>();
            let ends = lists.value_offsets().windows(2).enumerate();
            (ends.map(|(row, ends)| element(row, ends[0], ends[1])).collect(), lists.values())
        } else {
            let lists = lists.as_list::<i32>();
            let ends = lists.value_offsets().windows(2).enumerate();
            let ends = ends.map(|(row, ends)| element(row, ends[0].into(), ends[1].into()));
            (ends.collect(), lists.values())
        };
        self.nulls = positions.nulls().cloned();
        self.enter(arrow_select::take::take(elements, &positions, None)?.as_struct().clone());
        Ok(())
    }

    /// The `value` column, where it was read and is not all null.
    fn values(&self) -> Result<Option<Bytes<'_>>> {
        match self.layout.value.map(|position| self.group.column(position)) {
            Some(column) if column.null_count() < column.len() => Bytes::new(column).map(Some),
            _ => Ok(None),
        }
    }

    fn valid_rows(&self) -> BooleanBuffer {
        match &self.nulls {
            Some(nulls) => nulls.inner().clone(),
            None => BooleanBuffer::new_set(self.group.len()),
        }
    }

    /// Cast what the rest of the path finds in `value`, at the rows that are set.
    fn cast_values(&self, request: &Request<'_>, rows: &BooleanBuffer) -> Result<ArrayRef> {
        let mut builder = CastBuilder::new(request.target, request.casting)?;
        let values = self.values()?;
        let mut shapes = self.shapes()?;
        each_row(0..self.group.len(), |row| {
            let bytes = values.filter(|_| rows.value(row)).and_then(|values| values.get(row));
            self.cast_value(&mut builder, &mut shapes, row, bytes)
        })?;
        builder.finish()
    }

    fn has_names_left(&self) -> bool {
        self.rest.iter().any(|step| matches!(step, Step::Field(_)))
    }

    fn shapes(&self) -> Result<Option<Shapes<'a, ()>>> {
        self.metadata.map(|column| Shapes::new(column.as_ref(), |_| ())).transpose()
    }

    fn cast_value(
        &self,
        builder: &mut CastBuilder,
        shapes: &mut Option<Shapes<'a, ()>>,
        row: usize,
        bytes: Option<&[u8]>,
    ) -> Result<()> {
        // Scalars have no names, and most values next to a `typed_value` are scalars.
        let is_nested = bytes.and_then(|bytes| bytes.first()).is_some_and(|header| header & 0b10 != 0);
        let metadata = match shapes {
            Some(shapes) if is_nested => Some(shapes.at(row)?.metadata),
            _ => None,
        };
        if is_nested && metadata.is_none() && self.has_names_left() {
            return Err(Error::shredding("`metadata` was not read, and a name in `value` needs it"));
        }
        let found = match bytes {
            Some(bytes) => {
                path::get(&metadata.map_or_else(|| Metadata::parse(EMPTY), Ok)?, bytes, self.rest)?
            }
            None => None,
        };
        builder.append(metadata.as_ref(), found)
    }

    /// Cast a shredded leaf as a column, and replace rows that have a `value` by its cast.
    fn cast_leaf(&self, position: usize, request: &Request<'_>) -> Result<ArrayRef> {
        let typed = with_nulls(self.group.column(position), self.nulls.as_ref())?;
        let rows = self.rows_of_values()?;
        let cast = cast_array(&typed, request.target, request.casting)?;
        if rows.is_empty() {
            return Ok(cast);
        }
        let mut rows_kept = Vec::with_capacity(rows.len());
        for row in rows {
            match (typed.is_valid(row), request.on_conflict) {
                (false, _) => rows_kept.push(row),
                (true, OnConflict::Typed) => {}
                (true, OnConflict::Error) => return Err(self.conflict(row)),
            }
        }
        self.merge(&cast, &rows_kept, request)
    }

    fn conflict(&self, row: usize) -> Error {
        conflict("`value` and `typed_value` are both set").at_path(&self.layout.path).at_row(row)
    }

    fn rows_of_values(&self) -> Result<Vec<usize>> {
        let Some(position) = self.layout.value else { return Ok(Vec::new()) };
        let column = self.group.column(position);
        if column.null_count() == column.len() {
            return Ok(Vec::new());
        }
        let nulls = NullBuffer::union(self.nulls.as_ref(), column.nulls());
        Ok(match &nulls {
            Some(nulls) => nulls.valid_indices().collect(),
            None => (0..column.len()).collect(),
        })
    }

    /// `cast` with the casts of `value` at `rows`.
    fn merge(&self, cast: &ArrayRef, rows: &[usize], request: &Request<'_>) -> Result<ArrayRef> {
        let mut builder = CastBuilder::new(request.target, request.casting)?;
        let values = self.values()?;
        let mut shapes = self.shapes()?;
        each_row(rows.iter().copied(), |row| {
            self.cast_value(&mut builder, &mut shapes, row, values.and_then(|values| values.get(row)))
        })?;
        let (typed, others) = (cast.to_data(), builder.finish()?.to_data());
        let mut merged = MutableArrayData::new(vec![&typed, &others], true, cast.len());
        let mut start = 0;
        for (index, &row) in rows.iter().enumerate() {
            merged.try_extend(0, start, row)?;
            merged.try_extend(1, index, index + 1)?;
            start = row + 1;
        }
        merged.try_extend(0, start, cast.len())?;
        Ok(make_array(merged.freeze()))
    }

    /// Cast the scalars in `value`; shredded objects and arrays have no cast to a scalar.
    fn cast_unshredded_scalars(&self, position: usize, request: &Request<'_>) -> Result<ArrayRef> {
        let typed = self.group.column(position);
        let nulls = NullBuffer::union(self.nulls.as_ref(), typed.nulls());
        let nested = nulls.as_ref().map_or_else(|| self.valid_rows(), |nulls| nulls.inner().clone());
        if request.casting.strict
            && let Some(row) = nested.set_indices().next()
        {
            let kind = if typed.as_struct_opt().is_some() { "object" } else { "array" };
            return Err(Error::cast(format!(
                "cannot cast a value of type {kind} to {}; `try_variant_get` returns null where a cast fails",
                sql_name(request.target)
            ))
            .at_row(row));
        }
        self.cast_values(request, &(&self.valid_rows() & &!&nested))
    }

    /// Rebuild the values, and cast them.
    fn rebuild(&self, request: &Request<'_>) -> Result<ArrayRef> {
        let metadata = self.metadata.ok_or_else(|| Error::shredding("`metadata` was not read"))?;
        let mut fields = self.group.fields().to_vec();
        let mut columns = self.group.columns().to_vec();
        fields.push(Arc::new(arrow_schema::Field::new("metadata", metadata.data_type().clone(), true)));
        columns.push(metadata.clone());
        let layout = Layout { metadata: Some(columns.len() - 1), group: self.layout.clone() };
        let whole = StructArray::try_new(fields.into(), columns, self.present_rows())?;
        let variants = unshred_as(&whole, &layout, request.on_conflict)?;
        cast_variants(&variants, request)
    }

    /// Rows that have a value at the path.
    fn present_rows(&self) -> Option<NullBuffer> {
        if !self.is_field {
            return self.nulls.clone();
        }
        let typed_value = self.layout.typed_value.as_ref().map(|(position, _)| *position);
        let columns = [self.layout.value, typed_value].into_iter().flatten();
        let none = BooleanBuffer::new_unset(self.group.len());
        let any = columns.fold(none, |any, position| match self.group.column(position).nulls() {
            Some(nulls) => &any | nulls.inner(),
            None => BooleanBuffer::new_set(self.group.len()),
        });
        Some(NullBuffer::new(&any & &self.valid_rows()))
    }
}

/// Return `array` with the nulls of `nulls` in addition to its own.
fn with_nulls(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    match (nulls, array.nulls()) {
        (None, _) => Ok(array.clone()),
        (Some(nulls), Some(own)) if own.contains(nulls) => Ok(array.clone()),
        (Some(nulls), _) if nulls.null_count() == 0 => Ok(array.clone()),
        (Some(nulls), _) => {
            let is_null = BooleanArray::new(!nulls.inner(), None);
            Ok(arrow_select::nullif::nullif(array, &is_null)?)
        }
    }
}

fn cast_variants(variants: &StructArray, request: &Request<'_>) -> Result<ArrayRef> {
    let (metadata, values) = (variants.column(0), variants.column(1));
    if let DataType::Struct(fields) = request.target
        && is_variant(request.target)
    {
        let column = |name: &str| if name == "metadata" { metadata.clone() } else { values.clone() };
        let columns = fields.iter().map(|field| column(field.name())).collect();
        return Ok(Arc::new(StructArray::try_new(fields.clone(), columns, variants.nulls().cloned())?));
    }
    let mut builder = CastBuilder::new(request.target, request.casting)?;
    let mut shapes = Shapes::new(metadata.as_ref(), |_| ())?;
    let bytes = Bytes::new(values)?;
    each_row(0..variants.len(), |row| match bytes.get(row) {
        Some(bytes) => builder.append(Some(&shapes.at(row)?.metadata), Some(bytes)),
        None => builder.append(None, None),
    })?;
    builder.finish()
}
