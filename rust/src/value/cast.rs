//! `variant_get`: Variant values cast to SQL types, as Arrow columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, NullBufferBuilder, PrimitiveBuilder, StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};

use super::column::{Scalars, is_text_dictionary};
use super::json::{self, Keys};
use super::sql_type::{is_variant, sql_name};
use super::{Metadata, Object, Value, Zone, convert};
use crate::error::{Error, Result, each_row};

/// Builds a column of one type from Variant values, by the rules of Spark's `variant_get`.
///
/// Variant null and a missing value become null.
#[derive(Debug)]
pub struct CastBuilder {
    column: Column,
    target: DataType,
    casting: Casting,
}

/// How values are cast: a value without a cast is an error if `strict`, else null. `zone` is the time zone of local
/// times.
#[derive(Debug, Clone)]
pub struct Casting {
    pub strict: bool,
    pub zone: Zone,
}

impl Casting {
    /// Casts by local times in UTC.
    pub fn utc(strict: bool) -> Self {
        Casting { strict, zone: Zone::UTC }
    }
}

#[derive(Debug)]
enum Column {
    Boolean(BooleanBuilder),
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Float(PrimitiveBuilder<Float32Type>),
    Double(PrimitiveBuilder<Float64Type>),
    Decimal { builder: PrimitiveBuilder<Decimal128Type>, precision: u8, scale: u8 },
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    TimestampNtz(PrimitiveBuilder<TimestampMicrosecondType>),
    Binary(BinaryBuilder),
    String(StringColumn),
    Variant(VariantColumn),
    List(ListColumn),
    Struct(StructColumn),
    Map(MapColumn),
}

/// Match a column: `$work` on the builder of a scalar one, and arms for the others.
macro_rules! each_scalar {
    ($column:expr, $builder:ident => $work:expr, { $($others:tt)* }) => {
        match $column {
            Column::Boolean($builder) => $work,
            Column::Int8($builder) => $work,
            Column::Int16($builder) => $work,
            Column::Int32($builder) => $work,
            Column::Int64($builder) => $work,
            Column::Float($builder) => $work,
            Column::Double($builder) => $work,
            Column::Decimal { builder: $builder, .. } => $work,
            Column::Date($builder) => $work,
            Column::Timestamp($builder) | Column::TimestampNtz($builder) => $work,
            Column::Binary($builder) => $work,
            Column::String(StringColumn { builder: $builder, .. }) => $work,
            $($others)*
        }
    };
}

/// The number of distinct metadata whose keys a text column caches before it clears the cache.
const MAX_KEYS: usize = 4096;

#[derive(Debug, Default)]
struct StringColumn {
    builder: StringBuilder,
    scratch: Vec<u8>,
    /// The keys of the metadata seen, by their bytes.
    keys: HashMap<Vec<u8>, Keys, ahash::RandomState>,
}

#[derive(Debug)]
struct VariantColumn {
    fields: Fields,
    metadata: BinaryBuilder,
    value: BinaryBuilder,
    nulls: NullBufferBuilder,
}

#[derive(Debug)]
struct ListColumn {
    field: FieldRef,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    elements: Box<CastBuilder>,
}

#[derive(Debug)]
struct StructColumn {
    fields: Fields,
    nulls: NullBufferBuilder,
    children: Vec<CastBuilder>,
}

#[derive(Debug)]
struct MapColumn {
    entries: FieldRef,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    keys: StringBuilder,
    values: Box<CastBuilder>,
}

/// Whether casts to `target` show the names of objects, and so need `metadata`.
pub fn shows_names(target: &DataType) -> bool {
    match target {
        DataType::List(element) => shows_names(element.data_type()),
        _ => matches!(target, DataType::Utf8 | DataType::Struct(_) | DataType::Map(_, _)),
    }
}

impl CastBuilder {
    /// Return a builder of columns of the type `target`, or an error if Variants cannot be cast to it.
    pub fn new(target: &DataType, casting: &Casting) -> Result<Self> {
        let timestamps = || PrimitiveBuilder::new().with_data_type(target.clone());
        let column = match target {
            DataType::Boolean => Column::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Column::Int8(PrimitiveBuilder::new()),
            DataType::Int16 => Column::Int16(PrimitiveBuilder::new()),
            DataType::Int32 => Column::Int32(PrimitiveBuilder::new()),
            DataType::Int64 => Column::Int64(PrimitiveBuilder::new()),
            DataType::Float32 => Column::Float(PrimitiveBuilder::new()),
            DataType::Float64 => Column::Double(PrimitiveBuilder::new()),
            DataType::Decimal128(precision, scale @ 0..) => Column::Decimal {
                builder: PrimitiveBuilder::new().with_data_type(target.clone()),
                precision: *precision,
                scale: *scale as u8,
            },
            DataType::Date32 => Column::Date(PrimitiveBuilder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Column::Timestamp(timestamps()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => Column::TimestampNtz(timestamps()),
            DataType::Binary => Column::Binary(BinaryBuilder::new()),
            DataType::Utf8 => Column::String(StringColumn::default()),
            DataType::Struct(fields) if is_variant(target) => Column::Variant(VariantColumn::new(fields)),
            DataType::List(field) => Column::List(ListColumn::new(field, casting)?),
            DataType::Struct(fields) => Column::Struct(StructColumn::new(fields, casting)?),
            DataType::Map(entries, _) => Column::Map(MapColumn::new(entries, casting)?),
            other => {
                return Err(Error::unsupported(format!("a Variant cannot be cast to {}", sql_name(other))));
            }
        };
        Ok(CastBuilder { column, target: target.clone(), casting: casting.clone() })
    }

    /// Append the cast of `value`; a target that shows names (text, a struct, a map) needs its `metadata`.
    pub fn append(&mut self, metadata: Option<&Metadata<'_>>, value: Option<&[u8]>) -> Result<()> {
        match (&mut self.column, value) {
            (_, None) => self.append_null(),
            (Column::Variant(column), Some(bytes)) => column.append(metadata, bytes),
            (_, Some(bytes)) => self.append_value(metadata, &Value::decode(bytes)?),
        }
    }

    /// Append the cast of a decoded value, to any target but Variant.
    pub fn append_value(&mut self, metadata: Option<&Metadata<'_>>, value: &Value<'_>) -> Result<()> {
        if *value == Value::Null {
            return self.append_null();
        }
        let zone = &self.casting.zone;
        let taken = match &mut self.column {
            Column::Boolean(column) => convert::boolean(value).map(|v| column.append_value(v)),
            Column::Int8(column) => append_integer(column, value),
            Column::Int16(column) => append_integer(column, value),
            Column::Int32(column) => append_integer(column, value),
            Column::Int64(column) => append_integer(column, value),
            Column::Float(column) => convert::float(value).map(|v| column.append_value(v)),
            Column::Double(column) => convert::double(value).map(|v| column.append_value(v)),
            Column::Decimal { builder, precision, scale } => {
                convert::decimal(value, *precision, *scale).map(|v| builder.append_value(v))
            }
            Column::Date(column) => convert::date(value, zone).map(|v| column.append_value(v)),
            Column::Timestamp(column) => convert::timestamp(value, zone).map(|v| column.append_value(v)),
            Column::TimestampNtz(column) => {
                convert::timestamp_ntz(value, zone).map(|v| column.append_value(v))
            }
            Column::Binary(column) => append_binary(column, value)?,
            Column::String(column) => column.append(metadata, value, zone)?,
            Column::List(column) => column.append(metadata, value)?,
            Column::Struct(column) => column.append(metadata, value)?,
            Column::Map(column) => column.append(metadata, value)?,
            Column::Variant(_) => None,
        };
        match taken {
            Some(()) => Ok(()),
            None if self.casting.strict => Err(cannot_cast(value, &self.target)),
            None => self.append_null(),
        }
    }

    fn append_null(&mut self) -> Result<()> {
        each_scalar!(&mut self.column, column => column.append_null(), {
            Column::Variant(column) => column.append_null(),
            Column::List(column) => column.end(false)?,
            Column::Map(column) => column.end(false)?,
            Column::Struct(column) => {
                column.nulls.append_null();
                return column.children.iter_mut().try_for_each(CastBuilder::append_null);
            }
        });
        Ok(())
    }

    /// The column of all values appended.
    pub fn finish(mut self) -> Result<ArrayRef> {
        Ok(each_scalar!(&mut self.column, column => Arc::new(column.finish()), {
            _ => return self.finish_nested(),
        }))
    }

    fn finish_nested(self) -> Result<ArrayRef> {
        match self.column {
            Column::Variant(column) => column.finish(),
            Column::List(column) => column.finish(),
            Column::Struct(column) => column.finish(),
            Column::Map(column) => column.finish(),
            _ => Err(Error::unsupported("this type is not nested")),
        }
    }
}

fn append_integer<T: ArrowPrimitiveType>(column: &mut PrimitiveBuilder<T>, value: &Value<'_>) -> Option<()>
where
    T::Native: TryFrom<i64>,
{
    let number = T::Native::try_from(convert::integer(value)?).ok()?;
    column.append_value(number);
    Some(())
}

fn append_binary(column: &mut BinaryBuilder, value: &Value<'_>) -> Result<Option<()>> {
    let Some(bytes) = convert::binary(value) else { return Ok(None) };
    check_capacity(column.values_slice().len(), bytes.len())?;
    column.append_value(bytes);
    Ok(Some(()))
}

/// Return an error before a column grows beyond its 32-bit offsets.
fn check_capacity(length: usize, more: usize) -> Result<()> {
    i32::try_from(length + more).map(drop).map_err(|_| Error::too_large())
}

fn cannot_cast(value: &Value<'_>, target: &DataType) -> Error {
    const MAX_CHARACTERS: usize = 60;
    let mut text = Vec::new();
    let shown = match json::scalar(&mut text, value, &Zone::UTC) {
        Ok(()) => {
            let text = String::from_utf8_lossy(&text);
            match text.char_indices().nth(MAX_CHARACTERS) {
                Some((end, _)) => format!("{}… ({})", &text[..end], value.sql_type_name()),
                None => format!("{text} ({})", value.sql_type_name()),
            }
        }
        Err(_) => format!("a value of type {}", value.sql_type_name()),
    };
    Error::cast(format!(
        "cannot cast {shown} to {}; `try_variant_get` returns null where a cast fails",
        sql_name(target)
    ))
}

fn names_needed() -> Error {
    Error::variant("the `metadata` of a Variant with names is missing")
}

impl StringColumn {
    fn append(
        &mut self,
        metadata: Option<&Metadata<'_>>,
        value: &Value<'_>,
        zone: &Zone,
    ) -> Result<Option<()>> {
        self.scratch.clear();
        match value {
            Value::Object(object) => self.json(metadata, object.as_bytes(), zone)?,
            Value::Array(array) => self.json(metadata, array.as_bytes(), zone)?,
            _ if convert::string(&mut self.scratch, value, zone).is_none() => return Ok(None),
            _ => {}
        }
        check_capacity(self.builder.values_slice().len(), self.scratch.len())?;
        let text = super::utf8(&self.scratch).ok_or_else(|| super::malformed("a string is not UTF-8"))?;
        self.builder.append_value(text);
        Ok(Some(()))
    }

    fn json(&mut self, metadata: Option<&Metadata<'_>>, bytes: &[u8], zone: &Zone) -> Result<()> {
        let metadata = metadata.ok_or_else(names_needed)?;
        let bytes_of_names = metadata.as_bytes();
        if !self.keys.contains_key(bytes_of_names) {
            if self.keys.len() == MAX_KEYS {
                self.keys.clear();
            }
            self.keys.insert(bytes_of_names.to_vec(), Keys::new(metadata));
        }
        match self.keys.get(bytes_of_names) {
            Some(keys) => json::value(&mut self.scratch, keys, bytes, zone),
            None => Err(names_needed()),
        }
    }
}

impl VariantColumn {
    fn new(fields: &Fields) -> Self {
        VariantColumn {
            fields: fields.clone(),
            metadata: BinaryBuilder::new(),
            value: BinaryBuilder::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    fn append(&mut self, metadata: Option<&Metadata<'_>>, bytes: &[u8]) -> Result<()> {
        let metadata = metadata.ok_or_else(names_needed)?.as_bytes();
        check_capacity(self.metadata.values_slice().len(), metadata.len())?;
        check_capacity(self.value.values_slice().len(), bytes.len())?;
        self.metadata.append_value(metadata);
        self.value.append_value(bytes);
        self.nulls.append_non_null();
        Ok(())
    }

    fn append_null(&mut self) {
        // The children of a Variant may be declared not to be null.
        self.metadata.append_value([]);
        self.value.append_value([]);
        self.nulls.append_null();
    }

    fn finish(mut self) -> Result<ArrayRef> {
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(self.metadata.finish()), Arc::new(self.value.finish())];
        if self.fields.first().is_some_and(|field| field.name() == "value") {
            columns.swap(0, 1);
        }
        Ok(Arc::new(StructArray::try_new(self.fields, columns, self.nulls.finish())?))
    }
}

impl ListColumn {
    fn new(field: &FieldRef, casting: &Casting) -> Result<Self> {
        let elements = Box::new(CastBuilder::new(field.data_type(), casting)?);
        let nulls = NullBufferBuilder::new(0);
        Ok(ListColumn { field: field.clone(), offsets: vec![0], nulls, elements })
    }

    fn append(&mut self, metadata: Option<&Metadata<'_>>, value: &Value<'_>) -> Result<Option<()>> {
        let Value::Array(array) = value else { return Ok(None) };
        for element in array.elements() {
            self.elements.append(metadata, Some(element?))?;
        }
        self.end(true).map(Some)
    }

    fn end(&mut self, is_valid: bool) -> Result<()> {
        check_capacity(self.elements.len(), 0)?;
        self.offsets.push(self.elements.len() as i32);
        self.nulls.append(is_valid);
        Ok(())
    }

    fn finish(mut self) -> Result<ArrayRef> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let list = ListArray::try_new(self.field, offsets, self.elements.finish()?, self.nulls.finish())?;
        Ok(Arc::new(list))
    }
}

impl StructColumn {
    fn new(fields: &Fields, casting: &Casting) -> Result<Self> {
        let children = fields.iter().map(|field| CastBuilder::new(field.data_type(), casting));
        let children = children.collect::<Result<_>>()?;
        Ok(StructColumn { fields: fields.clone(), nulls: NullBufferBuilder::new(0), children })
    }

    fn append(&mut self, metadata: Option<&Metadata<'_>>, value: &Value<'_>) -> Result<Option<()>> {
        let Value::Object(object) = value else { return Ok(None) };
        let names = metadata.ok_or_else(names_needed)?;
        for (field, child) in self.fields.iter().zip(&mut self.children) {
            child.append(metadata, object.get(names, field.name())?)?;
        }
        self.nulls.append_non_null();
        Ok(Some(()))
    }

    fn finish(mut self) -> Result<ArrayRef> {
        let length = self.nulls.len();
        let children = self.children.into_iter().map(CastBuilder::finish).collect::<Result<Vec<_>>>()?;
        let nulls = self.nulls.finish();
        Ok(Arc::new(StructArray::try_new_with_length(self.fields, children, nulls, length)?))
    }
}

impl MapColumn {
    fn new(entries: &FieldRef, casting: &Casting) -> Result<Self> {
        let refused = || {
            let target = DataType::Map(entries.clone(), false);
            Error::unsupported(format!("a Variant cannot be cast to {}", sql_name(&target)))
        };
        let DataType::Struct(fields) = entries.data_type() else { return Err(refused()) };
        let [key, value] = &fields[..] else { return Err(refused()) };
        if *key.data_type() != DataType::Utf8 {
            return Err(refused());
        }
        let values = Box::new(CastBuilder::new(value.data_type(), casting)?);
        let (nulls, keys) = (NullBufferBuilder::new(0), StringBuilder::new());
        Ok(MapColumn { entries: entries.clone(), offsets: vec![0], nulls, keys, values })
    }

    fn append(&mut self, metadata: Option<&Metadata<'_>>, value: &Value<'_>) -> Result<Option<()>> {
        let Value::Object(object) = value else { return Ok(None) };
        self.append_fields(metadata, object)?;
        self.end(true).map(Some)
    }

    fn append_fields(&mut self, metadata: Option<&Metadata<'_>>, object: &Object<'_>) -> Result<()> {
        let names = metadata.ok_or_else(names_needed)?;
        for field in object.fields() {
            let (id, bytes) = field?;
            let name = names.get(id)?;
            check_capacity(self.keys.values_slice().len(), name.len())?;
            self.values.append(metadata, Some(bytes))?;
            self.keys.append_value(name);
        }
        Ok(())
    }

    fn end(&mut self, is_valid: bool) -> Result<()> {
        check_capacity(self.keys.len(), 0)?;
        self.offsets.push(self.keys.len() as i32);
        self.nulls.append(is_valid);
        Ok(())
    }

    fn finish(mut self) -> Result<ArrayRef> {
        let DataType::Struct(fields) = self.entries.data_type() else { return Err(names_needed()) };
        let columns: Vec<ArrayRef> = vec![Arc::new(self.keys.finish()), self.values.finish()?];
        let entries = StructArray::try_new(fields.clone(), columns, None)?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let map = MapArray::try_new(self.entries, offsets, entries, self.nulls.finish(), false)?;
        Ok(Arc::new(map))
    }
}

impl CastBuilder {
    /// The number of values appended.
    pub fn len(&self) -> usize {
        each_scalar!(&self.column, column => column.len(), {
            Column::Variant(column) => column.nulls.len(),
            Column::List(column) => column.nulls.len(),
            Column::Struct(column) => column.nulls.len(),
            Column::Map(column) => column.nulls.len(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The cast of a `typed_value` column of scalars: what casting each of its values gives, nulls kept.
///
/// Errors name the row.
pub fn cast_array(typed: &ArrayRef, target: &DataType, casting: &Casting) -> Result<ArrayRef> {
    if typed.data_type() == target {
        return Ok(typed.clone());
    }
    if is_text_dictionary(typed.data_type()) && *target == DataType::Utf8 {
        let dictionary = typed.as_dictionary::<Int32Type>();
        return Ok(arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?);
    }
    if let Some(cast) = widened(typed, target).or_else(|| narrowed(typed, target)) {
        return Ok(cast);
    }
    let scalars = Scalars::new(typed)?;
    let mut builder = CastBuilder::new(target, casting)?;
    each_row(0..typed.len(), |row| match typed.is_valid(row) {
        true => builder.append_value(None, &scalars.value(row)?),
        false => builder.append_null(),
    })?;
    builder.finish()
}

/// The casts between numbers that cannot fail.
fn widened(typed: &ArrayRef, target: &DataType) -> Option<ArrayRef> {
    match (typed.data_type(), target) {
        (DataType::Int8, DataType::Int64) => Some(unary::<Int8Type, Int64Type>(typed, i64::from)),
        (DataType::Int16, DataType::Int64) => Some(unary::<Int16Type, Int64Type>(typed, i64::from)),
        (DataType::Int32, DataType::Int64) => Some(unary::<Int32Type, Int64Type>(typed, i64::from)),
        (DataType::Int32, DataType::Float64) => Some(unary::<Int32Type, Float64Type>(typed, f64::from)),
        (DataType::Int64, DataType::Float64) => Some(unary::<Int64Type, Float64Type>(typed, |v| v as f64)),
        (DataType::Float32, DataType::Float64) => Some(unary::<Float32Type, Float64Type>(typed, f64::from)),
        (DataType::Decimal32(digits, scale), DataType::Float64) => {
            decimals_to_double::<Decimal32Type>(typed, *digits, *scale)
        }
        (DataType::Decimal64(digits, scale), DataType::Float64) => {
            decimals_to_double::<Decimal64Type>(typed, *digits, *scale)
        }
        (DataType::Decimal128(digits, scale), DataType::Float64) => {
            decimals_to_double::<Decimal128Type>(typed, *digits, *scale)
        }
        (
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)),
            DataType::Timestamp(TimeUnit::Microsecond, zone @ Some(_)),
        ) => {
            let timestamps = typed.as_primitive::<TimestampMicrosecondType>().clone();
            Some(Arc::new(timestamps.with_timezone_opt(zone.clone())))
        }
        _ => None,
    }
}

/// The casts to narrower integers; `None` if a value does not fit, which each of the rows then decides.
fn narrowed(typed: &ArrayRef, target: &DataType) -> Option<ArrayRef> {
    match (typed.data_type(), target) {
        (DataType::Int64, DataType::Int32) => fitting::<Int64Type, Int32Type>(typed),
        (DataType::Int64, DataType::Int16) => fitting::<Int64Type, Int16Type>(typed),
        (DataType::Int64, DataType::Int8) => fitting::<Int64Type, Int8Type>(typed),
        (DataType::Int32, DataType::Int16) => fitting::<Int32Type, Int16Type>(typed),
        (DataType::Int32, DataType::Int8) => fitting::<Int32Type, Int8Type>(typed),
        (DataType::Int16, DataType::Int8) => fitting::<Int16Type, Int8Type>(typed),
        _ => None,
    }
}

fn fitting<From, To>(array: &ArrayRef) -> Option<ArrayRef>
where
    From: ArrowPrimitiveType,
    To: ArrowPrimitiveType<Native: TryFrom<From::Native>>,
{
    let narrow = |value| To::Native::try_from(value).map_err(|_| ());
    Some(Arc::new(array.as_primitive::<From>().try_unary::<_, To, ()>(narrow).ok()?))
}

/// The nearest doubles of decimals whose digits a double holds: both sides of the division are exact, so it rounds
/// once. `None` for other values, and where one has more digits than its type, which is an error of its row.
fn decimals_to_double<T: ArrowPrimitiveType>(typed: &ArrayRef, digits: u8, scale: i8) -> Option<ArrayRef>
where
    T::Native: Into<i128>,
{
    const EXACT: i128 = 1 << 53;
    let array = typed.as_primitive::<T>();
    let limit = 10i128.checked_pow(digits.into()).map_or(EXACT, |limit| EXACT.min(limit - 1));
    let fits = |value: T::Native| (-limit..=limit).contains(&value.into());
    if !(0..=22).contains(&scale) || !array.iter().flatten().all(fits) {
        return None;
    }
    let power = 10f64.powi(scale.into());
    // The values of null rows are arbitrary, and their quotients are not used.
    Some(Arc::new(array.unary::<_, Float64Type>(|value| Into::<i128>::into(value) as i64 as f64 / power)))
}

fn unary<From: ArrowPrimitiveType, To: ArrowPrimitiveType>(
    array: &ArrayRef,
    convert: impl Fn(From::Native) -> To::Native,
) -> ArrayRef {
    Arc::new(array.as_primitive::<From>().unary::<_, To>(convert))
}

/// The fields of an unshredded Variant column.
pub fn variant_fields() -> Fields {
    Fields::from(["metadata", "value"].map(|name| Field::new(name, DataType::Binary, true)).to_vec())
}
