//! The columns of a shredded Variant column, and the walk over one row that puts its value together.

use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::layout::{Group, Typed};
use crate::error::{Error, Result};
use crate::value::column::{Bytes, Scalars};
use crate::value::{ByteBudget, Object, Value, malformed};

/// What to do when `value` and `typed_value` contradict each other (VariantShredding.md, "Value Shredding").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Return an error with the row and the path.
    #[default]
    Error,
    /// Read `typed_value` and ignore the contradicting `value`.
    Typed,
}

/// The columns of one [`Group`].
#[derive(Debug)]
pub(super) struct GroupReader<'a> {
    path: &'a str,
    /// `None` when every row is null, too.
    pub value: Option<Bytes<'a>>,
    /// With its nulls; `None` when every row is null, too.
    pub typed_value: Option<(TypedColumn<'a>, Option<&'a NullBuffer>)>,
    /// The group's own nulls. VariantShredding.md requires the group, but some writers make it optional.
    pub nulls: Option<&'a NullBuffer>,
    on_conflict: OnConflict,
}

#[derive(Debug)]
pub(super) enum TypedColumn<'a> {
    Leaf(Scalars<'a>),
    Object(Vec<FieldReader<'a>>),
    List(Offsets<'a>, Box<GroupReader<'a>>),
}

/// A shredded field; `slot` numbers the fields of a whole column.
#[derive(Debug)]
pub(super) struct FieldReader<'a> {
    pub name: &'a str,
    pub slot: usize,
    pub group: GroupReader<'a>,
}

/// Where the elements of each list begin and end.
#[derive(Debug)]
pub(crate) enum Offsets<'a> {
    Small(&'a [i32]),
    Large(&'a [i64]),
}

/// Takes the parts of one value in order; the fields of an object come in the order of their names.
pub(super) trait Sink {
    fn null(&mut self);
    fn scalar(&mut self, column: &Scalars<'_>, index: usize) -> Result<()>;
    /// The bytes of a `value` column, at nesting level `depth`.
    fn value(&mut self, bytes: &[u8], depth: usize) -> Result<()>;
    fn begin_object(&mut self);
    fn shredded_key(&mut self, field: &FieldReader<'_>);
    /// The key of a field that is not shredded, by its name id.
    fn key(&mut self, id: usize) -> Result<()>;
    fn end_object(&mut self) -> Result<()>;
    fn begin_array(&mut self);
    fn element(&mut self);
    fn end_array(&mut self) -> Result<()>;
}

impl<'a> GroupReader<'a> {
    /// Downcast the columns of `group`, which `layout` describes; the names of all fields go to `names` by slot.
    pub fn new(
        group: &'a StructArray,
        layout: &'a Group,
        on_conflict: OnConflict,
        names: &mut Vec<&'a str>,
    ) -> Result<Self> {
        let value = match layout.value.map(|position| group.column(position)) {
            Some(column) if column.null_count() < column.len() => Some(Bytes::new(column)?),
            _ => None,
        };
        let typed_value = match &layout.typed_value {
            Some((position, typed)) if group.column(*position).null_count() < group.len() => {
                let column = group.column(*position);
                Some((TypedColumn::new(column.as_ref(), typed, on_conflict, names)?, column.nulls()))
            }
            _ => None,
        };
        Ok(GroupReader { path: &layout.path, value, typed_value, nulls: group.nulls(), on_conflict })
    }

    /// The `typed_value` column and the `value` at `index`, each where it is not null.
    #[inline(always)]
    pub fn parts(&self, index: usize) -> (Option<&TypedColumn<'a>>, Option<&'a [u8]>) {
        if !is_valid(self.nulls, index) {
            return (None, None);
        }
        let typed = self.typed_value.as_ref().filter(|(_, nulls)| is_valid(*nulls, index));
        (typed.map(|(column, _)| column), self.value.and_then(|value| value.get(index)))
    }

    /// Pass the value at `index` to `sink`; a missing value is Variant null, as VariantShredding.md requires of
    /// readers.
    ///
    /// `names` are those of the row's metadata, by id.
    pub fn read(&self, index: usize, names: &[&str], sink: &mut impl Sink, depth: usize) -> Result<()> {
        self.read_parts(self.parts(index), index, names, sink, depth)
    }

    fn read_parts(
        &self,
        (typed, value): (Option<&TypedColumn<'a>>, Option<&'a [u8]>),
        index: usize,
        names: &[&str],
        sink: &mut impl Sink,
        depth: usize,
    ) -> Result<()> {
        match typed {
            None => match value {
                Some([]) => Err(malformed("`value` is empty").at_path(self.path)),
                Some(bytes) => sink.value(bytes, depth),
                None => {
                    sink.null();
                    Ok(())
                }
            },
            Some(TypedColumn::Leaf(column)) => {
                self.check_no_value(value)?;
                sink.scalar(column, index)
            }
            Some(TypedColumn::Object(fields)) => self.read_object(fields, value, index, names, sink, depth),
            Some(TypedColumn::List(offsets, element)) => {
                self.check_no_value(value)?;
                sink.begin_array();
                for index in offsets.range(index) {
                    sink.element();
                    element.read(index, names, sink, depth + 1)?;
                }
                sink.end_array()
            }
        }
    }

    fn read_object(
        &self,
        fields: &[FieldReader<'_>],
        value: Option<&'a [u8]>,
        index: usize,
        names: &[&str],
        sink: &mut impl Sink,
        depth: usize,
    ) -> Result<()> {
        sink.begin_object();
        let mut rest = self.unshredded_fields(value, names)?;
        for field in fields {
            if let Some(rest) = &mut rest {
                while rest.peek(names)?.is_some_and(|name| name < field.name) {
                    rest.read_next(sink, depth)?;
                }
                if rest.peek(names)? == Some(field.name) {
                    self.check_not_in_value(field)?;
                    rest.skip();
                }
            }
            self.check_group(field, index)?;
            let parts = field.group.parts(index);
            if let (Some(_), _) | (_, Some(_)) = parts {
                sink.shredded_key(field);
                field.group.read_parts(parts, index, names, sink, depth + 1)?;
            }
        }
        if let Some(rest) = &mut rest {
            while rest.peek(names)?.is_some() {
                rest.read_next(sink, depth)?;
            }
        }
        sink.end_object()
    }

    /// Check the group of a field of the object at `index`.
    #[inline]
    pub fn check_group(&self, field: &FieldReader<'_>, index: usize) -> Result<()> {
        match is_valid(field.group.nulls, index) {
            true => Ok(()),
            false => self.conflict(|| format!("the group of the shredded field {:?} is null", field.name)),
        }
    }

    /// The error, or nothing, for a shredded field that is in `value`, too.
    pub fn check_not_in_value(&self, field: &FieldReader<'_>) -> Result<()> {
        self.conflict(|| format!("the shredded field {:?} is in `value` too", field.name))
    }

    /// The fields of a partially shredded object that are in `value`.
    pub fn unshredded_fields(&self, value: Option<&'a [u8]>, names: &[&str]) -> Result<Option<Fields<'a>>> {
        match value.map(Value::decode).transpose()? {
            None => Ok(None),
            Some(Value::Object(object)) => Fields::new(object, names).map(Some),
            Some(other) => {
                let kind = other.type_name();
                self.conflict(|| format!("`typed_value` holds an object, but `value` has the type {kind}"))?;
                Ok(None)
            }
        }
    }

    #[inline]
    pub fn check_no_value(&self, value: Option<&[u8]>) -> Result<()> {
        match value {
            Some(_) => self.conflict(|| "`value` and `typed_value` are both set".into()),
            None => Ok(()),
        }
    }

    fn conflict(&self, what: impl FnOnce() -> String) -> Result<()> {
        match self.on_conflict {
            OnConflict::Typed => Ok(()),
            OnConflict::Error => Err(conflict(&what()).at_path(self.path)),
        }
    }
}

impl<'a> TypedColumn<'a> {
    fn new(
        array: &'a dyn Array,
        typed: &'a Typed,
        on_conflict: OnConflict,
        names: &mut Vec<&'a str>,
    ) -> Result<Self> {
        match typed {
            Typed::Leaf(_) => Scalars::new(array).map(TypedColumn::Leaf),
            Typed::Object(fields) => {
                let group = array.as_struct();
                let mut readers = Vec::with_capacity(fields.len());
                for field in fields {
                    let slot = names.len();
                    names.push(&field.name);
                    let column = group.column(field.position).as_struct();
                    let group = GroupReader::new(column, &field.group, on_conflict, names)?;
                    readers.push(FieldReader { name: &field.name, slot, group });
                }
                Ok(TypedColumn::Object(readers))
            }
            Typed::List(element) => {
                let (offsets, elements) = Offsets::of(array);
                let element = GroupReader::new(elements, element, on_conflict, names)?;
                Ok(TypedColumn::List(offsets, Box::new(element)))
            }
        }
    }
}

impl<'a> Offsets<'a> {
    /// The offsets and the elements of a list.
    pub fn of(array: &'a dyn Array) -> (Self, &'a StructArray) {
        if let DataType::LargeList(_) = array.data_type() {
            let list = array.as_list::<i64>();
            return (Offsets::Large(list.value_offsets()), list.values().as_struct());
        }
        let list = array.as_list::<i32>();
        (Offsets::Small(list.value_offsets()), list.values().as_struct())
    }

    pub fn range(&self, index: usize) -> std::ops::Range<usize> {
        match self {
            Offsets::Small(offsets) => offsets[index] as usize..offsets[index + 1] as usize,
            Offsets::Large(offsets) => offsets[index] as usize..offsets[index + 1] as usize,
        }
    }
}

pub(super) fn conflict(what: &str) -> Error {
    Error::conflict(format!(
        "conflicting `value` and `typed_value`: {what}; on_conflict=\"typed\" reads `typed_value`"
    ))
}

#[inline]
pub(crate) fn is_valid(nulls: Option<&NullBuffer>, index: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(index))
}

/// The fields of an object in the order of their names, read one after the other.
pub(super) struct Fields<'a> {
    object: Object<'a>,
    budget: ByteBudget,
    /// The order of the fields, if the object is not sorted by name.
    order: Option<Vec<usize>>,
    next: usize,
}

impl<'a> Fields<'a> {
    fn new(object: Object<'a>, names: &[&str]) -> Result<Self> {
        let mut fields = Fields { object, budget: object.budget(), order: None, next: 0 };
        let mut previous = None;
        for index in 0..object.len() {
            let name = fields.name(index, names)?;
            if previous.is_some_and(|previous| previous >= name) {
                fields.sort(names)?;
                break;
            }
            previous = Some(name);
        }
        Ok(fields)
    }

    fn sort(&mut self, names: &[&str]) -> Result<()> {
        let mut sorted =
            (0..self.object.len()).map(|i| Ok((self.name(i, names)?, i))).collect::<Result<Vec<_>>>()?;
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(malformed(&format!("an object has two fields called {:?}", pair[0].0)));
        }
        self.order = Some(sorted.into_iter().map(|(_, index)| index).collect());
        Ok(())
    }

    fn name<'n>(&self, index: usize, names: &[&'n str]) -> Result<&'n str> {
        self.object.field_name(index, names)
    }

    fn next_index(&self) -> usize {
        self.order.as_ref().and_then(|order| order.get(self.next).copied()).unwrap_or(self.next)
    }

    /// The name of the next field.
    pub fn peek<'n>(&self, names: &[&'n str]) -> Result<Option<&'n str>> {
        if self.next >= self.object.len() {
            return Ok(None);
        }
        self.name(self.next_index(), names).map(Some)
    }

    pub fn skip(&mut self) {
        self.next += 1;
    }

    /// The name id and the bytes of the next field.
    pub fn take(&mut self) -> Result<(usize, &'a [u8])> {
        let (id, bytes) = self.object.field(self.next_index())?;
        self.budget.take(bytes)?;
        self.next += 1;
        Ok((id, bytes))
    }

    fn read_next(&mut self, sink: &mut impl Sink, depth: usize) -> Result<()> {
        let (id, bytes) = self.take()?;
        sink.key(id)?;
        sink.value(bytes, depth + 1)
    }
}
