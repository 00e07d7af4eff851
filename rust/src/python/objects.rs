//! Convert Variant values to Python objects.

use std::ops::RangeInclusive;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDate, PyDateTime, PyDict, PyFloat, PyList, PyString, PyTime, PyType, PyTzInfo};

use super::arrays::PyArray;
use super::run;
use super::values::plain;
use crate::error::{Error, Result};
use crate::value::Zone;
use crate::value::json;
use crate::value::text::civil;
use crate::value::{self, Decimal, Metadata, Value, no_such_name};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
const NANOS_PER_MICRO: i64 = 1_000;

/// The years of Python's dates.
const YEARS: RangeInclusive<i64> = 1..=9999;

/// Return the value as Python objects: dict, list, str, bytes, bool, int, float, None, and those of `decimal`,
/// `datetime` and `uuid`.
///
/// A timestamp with a time zone is aware, in UTC. A value that Python cannot represent, such as nanoseconds, raises
/// `CastError`.
#[pyfunction]
pub fn to_python<'py>(py: Python<'py>, metadata: &[u8], value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let metadata = Metadata::parse(metadata)?;
    value::validate(&metadata, value)?;
    let names: Vec<_> = metadata.names().map(|name| PyString::new(py, name)).collect();
    object(py, &names, value)
}

/// Return the value of each row of a Variant array, `None` for null, as `to_python` does.
#[pyfunction]
pub fn to_python_list<'py>(py: Python<'py>, variants: PyArray) -> PyResult<Bound<'py, PyList>> {
    let plain = run(py, || plain(variants))?;
    let (metadata, values) = (plain.column(0).as_binary::<i32>(), plain.column(1).as_binary::<i32>());
    let rows = PyList::empty(py);
    for row in 0..plain.len() {
        match plain.is_valid(row) {
            true => rows.append(row_object(py, metadata.value(row), values.value(row), row)?)?,
            false => rows.append(py.None())?,
        }
    }
    Ok(rows)
}

/// Return the object of a row of an array; errors have the row.
fn row_object<'py>(
    py: Python<'py>,
    metadata: &[u8],
    value: &[u8],
    row: usize,
) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, metadata, value).map_err(|error| at_row(py, error, row))
}

/// Return an exception of the library with the row.
pub fn at_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    let location = PyDict::new(py);
    match location.set_item("row", row).and_then(|()| error.value(py).call_method("at", (), Some(&location)))
    {
        Ok(located) => PyErr::from_value(located),
        Err(_) => error,
    }
}

/// Return the object of a validated value, whose nesting is therefore bounded; `names` are by id.
fn object<'py>(py: Python<'py>, names: &[Bound<'py, PyString>], bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match Value::decode(bytes)? {
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for field in fields.fields() {
                let (id, value) = field?;
                let name = names.get(id).ok_or_else(|| no_such_name(id, names.len()))?;
                dict.set_item(name, object(py, names, value)?)?;
            }
            Ok(dict.into_any())
        }
        Value::Array(array) => {
            let list = PyList::empty(py);
            for element in array.elements() {
                list.append(object(py, names, element?)?)?;
            }
            Ok(list.into_any())
        }
        scalar => scalar_object(py, &scalar),
    }
}

fn scalar_object<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match *value {
        Value::Null => py.None().into_bound(py),
        Value::Boolean(v) => v.into_pyobject(py)?.to_owned().into_any(),
        Value::Int8(v) => v.into_pyobject(py)?.into_any(),
        Value::Int16(v) => v.into_pyobject(py)?.into_any(),
        Value::Int32(v) => v.into_pyobject(py)?.into_any(),
        Value::Int64(v) => v.into_pyobject(py)?.into_any(),
        Value::Float(v) => PyFloat::new(py, v.into()).into_any(),
        Value::Double(v) => PyFloat::new(py, v).into_any(),
        Value::Decimal(v) => decimal(py, v)?,
        Value::Date(days) => date(py, value, days.into())?,
        Value::Time(micros) => {
            let (hour, minute, second, micros) = clock(micros);
            PyTime::new(py, hour, minute, second, micros, None)?.into_any()
        }
        Value::Timestamp(micros) => datetime(py, value, micros, true)?,
        Value::TimestampNtz(micros) => datetime(py, value, micros, false)?,
        Value::TimestampNanos(nanos) => datetime(py, value, whole_micros(value, nanos)?, true)?,
        Value::TimestampNtzNanos(nanos) => datetime(py, value, whole_micros(value, nanos)?, false)?,
        Value::Binary(v) => PyBytes::new(py, v).into_any(),
        Value::String(v) => PyString::new(py, v).into_any(),
        Value::Uuid(v) => uuid(py, &v)?,
        Value::Object(_) | Value::Array(_) | Value::Unknown(_) => {
            return Err(unfit(value, "is not a scalar").into());
        }
    })
}

fn decimal<'py>(py: Python<'py>, Decimal { unscaled, scale }: Decimal) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    // A Decimal from text is exact in every context.
    CLASS.import(py, "decimal", "Decimal")?.call1((format!("{unscaled}E-{scale}"),))
}

fn uuid<'py>(py: Python<'py>, bytes: &[u8; 16]) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "uuid", "UUID")?.call1((py.None(), PyBytes::new(py, bytes)))
}

fn date<'py>(py: Python<'py>, value: &Value<'_>, days: i64) -> PyResult<Bound<'py, PyAny>> {
    let (year, month, day) = calendar(value, days)?;
    Ok(PyDate::new(py, year, month, day)?.into_any())
}

fn datetime<'py>(
    py: Python<'py>,
    value: &Value<'_>,
    micros: i64,
    is_utc: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (year, month, day) = calendar(value, micros.div_euclid(MICROS_PER_DAY))?;
    let (hour, minute, second, micros) = clock(micros.rem_euclid(MICROS_PER_DAY));
    let zone = if is_utc { Some(PyTzInfo::utc(py)?) } else { None };
    let zone = zone.as_deref();
    Ok(PyDateTime::new(py, year, month, day, hour, minute, second, micros, zone)?.into_any())
}

fn whole_micros(value: &Value<'_>, nanos: i64) -> Result<i64> {
    match nanos % NANOS_PER_MICRO {
        0 => Ok(nanos / NANOS_PER_MICRO),
        _ => Err(unfit(value, "has nanoseconds, and Python's datetime has none")),
    }
}

/// Return year, month and day of a day since 1970-01-01.
fn calendar(value: &Value<'_>, days: i64) -> Result<(i32, u8, u8)> {
    let (year, month, day) = civil(days);
    match YEARS.contains(&year) {
        true => Ok((year as i32, month as u8, day as u8)),
        false => Err(unfit(value, "lies outside of the years 1 to 9999 that Python's dates have")),
    }
}

/// Hour, minute, second and microsecond of a time of day.
fn clock(micros: i64) -> (u8, u8, u8, u32) {
    let seconds = micros / MICROS_PER_SECOND;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    (hour as u8, minute as u8, second as u8, (micros % MICROS_PER_SECOND) as u32)
}

fn unfit(value: &Value<'_>, why: &str) -> Error {
    let mut text = Vec::new();
    match json::plain(&mut text, value, &Zone::UTC) {
        Ok(()) => Error::cast(format!("{} {} {why}", value.sql_type_name(), String::from_utf8_lossy(&text))),
        Err(error) => error,
    }
}
