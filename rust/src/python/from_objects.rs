//! Convert Python objects to Variant values.

use std::borrow::Cow;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyMapping,
    PyString, PyTime, PyTuple, PyType,
};

use super::arrays::PyArray;
use crate::value::build::{NULL, Rows, Tree, check_depth, names_of};
use crate::value::{Decimal, MAX_DECIMAL_DIGITS, Value};
use arrow_array::Array;
use arrow_pyarrow::PyArrowType;

type Object<'py> = Bound<'py, PyAny>;

/// Return Python objects as a Variant array, with null for `None` unless `nulls_are_variants`.
#[pyfunction]
pub fn from_python(
    py: Python<'_>,
    objects: &Bound<'_, PyList>,
    nulls_are_variants: bool,
) -> PyResult<PyArray> {
    let mut rows = Rows::new(objects.len());
    for (row, object) in objects.iter().enumerate() {
        let pushed = match is_missing(&object)? && !nulls_are_variants {
            true => rows.push(None).map_err(PyErr::from),
            false => tree(&object, 0).and_then(|tree| Ok(rows.push(Some(&tree))?)),
        };
        pushed.map_err(|error| super::objects::at_row(py, error, row))?;
    }
    Ok(PyArrowType(rows.finish()?.to_data()))
}

/// Return metadata and value in the one form that equal Variants share.
#[pyfunction]
pub fn canonical<'py>(
    py: Python<'py>,
    metadata: &[u8],
    value: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let tree = Tree::decode(&names_of(metadata)?, value, 0)?.canonical();
    let (metadata, value) = tree.encode();
    Ok((PyBytes::new(py, &metadata), PyBytes::new(py, &value)))
}

fn tree(object: &Object<'_>, depth: usize) -> PyResult<Tree<'static>> {
    check_depth(depth)?;
    if let Ok(dict) = object.cast::<PyDict>() {
        let field = |(name, value): (Object<'_>, Object<'_>)| field(&name, &value, depth);
        return Ok(Tree::object(dict.iter().map(field).collect::<PyResult<_>>()?)?);
    }
    if let Ok(list) = object.cast::<PyList>() {
        return elements(list.iter(), depth);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return elements(tuple.iter(), depth);
    }
    match scalar(object)? {
        Some(tree) => Ok(tree),
        None => other(object, depth),
    }
}

fn elements<'py>(elements: impl Iterator<Item = Object<'py>>, depth: usize) -> PyResult<Tree<'static>> {
    Ok(Tree::Array(elements.map(|element| tree(&element, depth + 1)).collect::<PyResult<_>>()?))
}

fn field(
    name: &Object<'_>,
    value: &Object<'_>,
    depth: usize,
) -> PyResult<(Cow<'static, str>, Tree<'static>)> {
    let Ok(text) = name.cast::<PyString>() else {
        let message = format!(
            "cannot convert a dict with the key {} to a Variant because names of fields are strings: convert the key",
            name.repr()?
        );
        return Err(argument_error(name.py(), &message));
    };
    Ok((Cow::Owned(utf8(text)?), tree(value, depth + 1)?))
}

fn utf8(text: &Bound<'_, PyString>) -> PyResult<String> {
    text.extract::<String>().map_err(|_| {
        argument_error(
            text.py(),
            "cannot convert text with an unpaired surrogate to a Variant: pass valid Unicode text",
        )
    })
}

/// Return whether an object is `None`, or the `NaT` or `NA` of pandas.
fn is_missing(object: &Object<'_>) -> PyResult<bool> {
    if object.is_none() {
        return Ok(true);
    }
    let kind = object.get_type();
    Ok((kind.name()? == "NaTType" || kind.name()? == "NAType")
        && kind.module()?.to_str()?.starts_with("pandas."))
}

fn scalar(object: &Object<'_>) -> PyResult<Option<Tree<'static>>> {
    if object.is_none() {
        return Ok(Some(NULL));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Some(Tree::string(&utf8(text)?)));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Some(Tree::Scalar(Value::Boolean(value.is_true()))));
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object).map(Some);
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Some(Tree::Scalar(Value::Double(value.value()))));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Tree::binary(bytes.as_bytes())));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(Tree::binary(&bytes.to_vec())));
    }
    temporal(object)
}

/// Return an integer in the narrowest type that holds it, beyond 64 bits as a decimal.
fn integer(object: &Object<'_>) -> PyResult<Tree<'static>> {
    match object.extract::<i128>() {
        Ok(value) => match i64::try_from(value) {
            Ok(value) => Ok(Tree::Scalar(narrowest(value))),
            Err(_) => decimal_of(object, value, 0),
        },
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Err(too_long(object)?),
        Err(error) => Err(error),
    }
}

fn narrowest(value: i64) -> Value<'static> {
    if let Ok(value) = i8::try_from(value) {
        Value::Int8(value)
    } else if let Ok(value) = i16::try_from(value) {
        Value::Int16(value)
    } else if let Ok(value) = i32::try_from(value) {
        Value::Int32(value)
    } else {
        Value::Int64(value)
    }
}

fn decimal_of(object: &Object<'_>, unscaled: i128, scale: u8) -> PyResult<Tree<'static>> {
    match unscaled.unsigned_abs() < 10u128.pow(MAX_DECIMAL_DIGITS.into()) {
        true => Ok(Tree::Scalar(Value::Decimal(Decimal { unscaled, scale }))),
        false => Err(too_long(object)?),
    }
}

fn too_long(object: &Object<'_>) -> PyResult<PyErr> {
    let message = format!(
        "cannot convert the number {} to a Variant because it has more than {MAX_DECIMAL_DIGITS} digits: pass a float or text",
        object.str()?
    );
    Ok(value_error(object.py(), &message))
}

/// Return a value of `datetime`, `decimal` or `uuid`.
fn temporal(object: &Object<'_>) -> PyResult<Option<Tree<'static>>> {
    let py = object.py();
    if let Ok(moment) = object.cast::<PyDateTime>() {
        // The type of NaT is a subclass of datetime.
        if is_missing(object)? {
            return Ok(Some(NULL));
        }
        let is_aware = !moment.call_method0("utcoffset")?.is_none();
        let epoch = py.import("datetime")?.getattr("datetime")?.call1((1970, 1, 1))?;
        let zone = PyDict::new(py);
        zone.set_item("tzinfo", py.None())?;
        let local = moment.call_method("replace", (), Some(&zone))?;
        let mut since = micros(&local.sub(epoch)?)?;
        if is_aware {
            since -= micros(&moment.call_method0("utcoffset")?)?;
        }
        return Ok(Some(Tree::Scalar(match (nanos(object, since)?, is_aware) {
            (Some(nanos), true) => Value::TimestampNanos(nanos),
            (Some(nanos), false) => Value::TimestampNtzNanos(nanos),
            (None, true) => Value::Timestamp(since),
            (None, false) => Value::TimestampNtz(since),
        })));
    }
    if object.is_instance_of::<PyDate>() {
        let ordinal: i32 = object.call_method0("toordinal")?.extract()?;
        return Ok(Some(Tree::Scalar(Value::Date(ordinal - EPOCH_ORDINAL))));
    }
    if object.is_instance_of::<PyTime>() {
        return time(object).map(Some);
    }
    if object.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        return decimal(object).map(Some);
    }
    if object.is_instance(UUID.import(py, "uuid", "UUID")?)? {
        let bytes: [u8; 16] = object.getattr("bytes")?.extract()?;
        return Ok(Some(Tree::Scalar(Value::Uuid(bytes))));
    }
    Ok(None)
}

/// The proleptic Gregorian ordinal of 1970-01-01.
const EPOCH_ORDINAL: i32 = 719_163;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static VARIANT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn micros(delta: &Object<'_>) -> PyResult<i64> {
    let part = |name: &str| delta.getattr(name)?.extract::<i64>();
    Ok((part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?)
}

/// Return the nanoseconds of a `Timestamp` of pandas that is between two microseconds.
fn nanos(object: &Object<'_>, since: i64) -> PyResult<Option<i64>> {
    match object.getattr_opt("nanosecond")? {
        Some(part) => Ok(match part.extract::<i64>()? {
            0 => None,
            part => since.checked_mul(1_000).and_then(|nanos| nanos.checked_add(part)),
        }),
        None => Ok(None),
    }
}

fn time(object: &Object<'_>) -> PyResult<Tree<'static>> {
    if !object.getattr("tzinfo")?.is_none() {
        let message = "cannot convert a time with a time zone to a Variant: pass a time without one";
        return Err(value_error(object.py(), message));
    }
    let part = |name: &str| object.getattr(name)?.extract::<i64>();
    let seconds = part("hour")? * 3600 + part("minute")? * 60 + part("second")?;
    Ok(Tree::Scalar(Value::Time(seconds * 1_000_000 + part("microsecond")?)))
}

fn decimal(object: &Object<'_>) -> PyResult<Tree<'static>> {
    let parts = object.call_method0("as_tuple")?;
    let Ok(exponent) = parts.getattr("exponent")?.extract::<i64>() else {
        let message =
            format!("cannot convert {} to a Variant: pass a finite Decimal, or a float", object.repr()?);
        return Err(value_error(object.py(), &message));
    };
    let digits: Vec<u8> = parts.getattr("digits")?.extract()?;
    let is_negative: bool = parts.getattr("sign")?.extract::<i64>()? == 1;
    let zeros = usize::try_from(exponent.max(0)).unwrap_or(usize::MAX);
    let is_zero = digits.iter().all(|&digit| digit == 0);
    let scale = u8::try_from((-exponent).max(0)).ok().filter(|&scale| scale <= MAX_DECIMAL_DIGITS);
    let (Some(scale), true) = (scale, is_zero || digits.len().saturating_add(zeros) <= 38) else {
        return Err(too_long(object)?);
    };
    let zeros = if is_zero { 0 } else { zeros };
    let magnitude = digits
        .iter()
        .chain(std::iter::repeat_n(&0, zeros))
        .fold(0i128, |sum, &digit| sum * 10 + i128::from(digit));
    decimal_of(object, if is_negative { -magnitude } else { magnitude }, scale)
}

/// Return a Variant, another mapping, a missing value of pandas, or a number of NumPy.
fn other(object: &Object<'_>, depth: usize) -> PyResult<Tree<'static>> {
    let py = object.py();
    if is_missing(object)? {
        return Ok(NULL);
    }
    if object.is_instance(VARIANT.import(py, "delta_variant.variant.values", "Variant")?)? {
        let metadata: Vec<u8> = object.getattr("metadata")?.extract()?;
        let value: Vec<u8> = object.getattr("value")?.extract()?;
        return Ok(owned(Tree::decode(&names_of(&metadata)?, &value, depth)?));
    }
    if object.is_instance_of::<PyDelta>() {
        return Err(unsupported(object)?);
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let items = mapping.items()?;
        let field = |item: Object<'_>| field(&item.get_item(0)?, &item.get_item(1)?, depth);
        return Ok(Tree::object(items.iter().map(field).collect::<PyResult<_>>()?)?);
    }
    // Scalars of NumPy, and arrays, know their Python value.
    match object.hasattr("dtype")? && object.hasattr("tolist")? {
        true => {
            let plain = object.call_method0("tolist")?;
            if plain.get_type().is(object.get_type()) {
                return Err(unsupported(object)?);
            }
            match object.getattr("dtype")?.getattr_opt("kind")? {
                Some(kind) if kind.eq("M")? || kind.eq("m")? => moments(object, &plain, depth),
                _ => tree(&plain, depth),
            }
        }
        false => Err(unsupported(object)?),
    }
}

/// Return the Python values of `datetime64`, which are integers for units that `datetime` does not have.
fn moments(object: &Object<'_>, plain: &Object<'_>, depth: usize) -> PyResult<Tree<'static>> {
    check_depth(depth)?;
    if let Ok(list) = plain.cast::<PyList>() {
        let each = |plain: Object<'_>| moments(object, &plain, depth + 1);
        return Ok(Tree::Array(list.iter().map(each).collect::<PyResult<_>>()?));
    }
    if !plain.is_instance_of::<PyInt>() {
        return tree(plain, depth);
    }
    match (plain.extract::<i64>()?, object.getattr("dtype")?.str()? == "datetime64[ns]") {
        // NumPy's NaT.
        (i64::MIN, true) => Ok(NULL),
        (nanos, true) => Ok(Tree::Scalar(Value::TimestampNtzNanos(nanos))),
        (_, false) => Err(unsupported(object)?),
    }
}

fn owned(tree: Tree<'_>) -> Tree<'static> {
    match tree {
        Tree::Scalar(value) => {
            let mut bytes = Vec::new();
            crate::value::encode::scalar(&mut bytes, &value);
            Tree::Encoded(bytes)
        }
        Tree::Encoded(bytes) => Tree::Encoded(bytes),
        Tree::Array(elements) => Tree::Array(elements.into_iter().map(owned).collect()),
        Tree::Object(fields) => Tree::Object(
            fields.into_iter().map(|(name, value)| (Cow::Owned(name.into_owned()), owned(value))).collect(),
        ),
    }
}

fn unsupported(object: &Object<'_>) -> PyResult<PyErr> {
    let message = format!(
        "cannot convert a value of type {} to a Variant: pass None, bool, int, float, Decimal, str, bytes, date, datetime, time, UUID, Variant, or dicts and lists of them",
        object.get_type().fully_qualified_name()?
    );
    Ok(argument_error(object.py(), &message))
}

fn argument_error(py: Python<'_>, message: &str) -> PyErr {
    error_of(py, "ArgumentTypeError", message)
}

fn value_error(py: Python<'_>, message: &str) -> PyErr {
    error_of(py, "CastError", message)
}

/// Return an exception of `delta_variant.errors`.
fn error_of(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py.import("delta_variant.errors").and_then(|errors| errors.getattr(class)?.call1((message,)));
    made.map_or_else(|cause| cause, PyErr::from_value)
}
