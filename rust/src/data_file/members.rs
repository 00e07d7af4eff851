//! A set of values, for tests of many values with many options.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use ahash::HashSet;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, ScalarBuffer};
use arrow_schema::DataType;

type Contain = dyn Fn(&ArrayRef) -> BooleanBuffer + Send + Sync;

/// Values of one type, none of which is null.
#[derive(Clone)]
pub struct Members {
    pub data_type: DataType,
    contain: Arc<Contain>,
}

impl fmt::Debug for Members {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Members({})", self.data_type)
    }
}

impl Members {
    /// Return the set of some values, or `None` for a type whose equal values can have different bytes.
    pub fn of(values: &ArrayRef) -> Option<Self> {
        let data_type = values.data_type().clone();
        let contain = match (&data_type, data_type.primitive_width()) {
            (each, _) if each.is_floating() => return None,
            (_, Some(1)) => numbers::<u8>(values),
            (_, Some(2)) => numbers::<u16>(values),
            (_, Some(4)) => numbers::<u32>(values),
            (_, Some(8)) => numbers::<u64>(values),
            (_, Some(16)) => numbers::<i128>(values),
            (DataType::Utf8, _) => texts(values, |each, row| each.as_string::<i32>().value(row).as_bytes()),
            (DataType::Binary, _) => texts(values, |each, row| each.as_binary::<i32>().value(row)),
            _ => return None,
        };
        Some(Self { data_type, contain })
    }

    /// Return which of some values of this type are in the set. The answer for null can be any.
    pub fn contain(&self, values: &ArrayRef) -> BooleanBuffer {
        (self.contain)(values)
    }
}

fn numbers<T: ArrowNativeType + Hash + Eq>(values: &ArrayRef) -> Arc<Contain> {
    let set: HashSet<T> = native::<T>(values).iter().copied().collect();
    Arc::new(move |values| {
        let numbers = native::<T>(values);
        BooleanBuffer::collect_bool(numbers.len(), |row| set.contains(&numbers[row]))
    })
}

fn native<T: ArrowNativeType>(values: &ArrayRef) -> ScalarBuffer<T> {
    let data = values.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn texts(values: &ArrayRef, text: fn(&ArrayRef, usize) -> &[u8]) -> Arc<Contain> {
    let set: HashSet<Box<[u8]>> = (0..values.len()).map(|row| text(values, row).into()).collect();
    Arc::new(move |values| BooleanBuffer::collect_bool(values.len(), |row| set.contains(text(values, row))))
}
