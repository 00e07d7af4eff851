//! Random columns of the types that a Delta table may hold.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};

/// A random number generator: the arrays are too large to be drawn value by value.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    pub fn is_one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

const UTC: &str = "UTC";

/// The leaf types that a Delta table may hold.
pub fn leaf_types() -> Vec<DataType> {
    use DataType::*;
    let dictionary = |key: DataType, value: DataType| Dictionary(Box::new(key), Box::new(value));
    let mut types = vec![Boolean, Int8, Int16, Int32, Int64, Float32, Float64, Date32];
    types.extend([1, 9, 10, 18, 19, 28, 38].map(|precision| Decimal128(precision, 1)));
    types.extend([TimeUnit::Microsecond, TimeUnit::Nanosecond].map(|unit| Timestamp(unit, None)));
    types.extend([TimeUnit::Microsecond, TimeUnit::Nanosecond].map(|unit| Timestamp(unit, Some(UTC.into()))));
    types.push(Time64(TimeUnit::Microsecond));
    types.extend([Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView]);
    types.extend([1, 16, 70].map(FixedSizeBinary));
    types.extend([dictionary(Int32, Binary), dictionary(UInt8, Utf8), dictionary(Int16, Int64)]);
    types
}

pub fn random_type(random: &mut Random, depth: usize) -> DataType {
    let leaves = leaf_types();
    let kind = if depth == 0 { 9 } else { random.below(10) };
    let child = |random: &mut Random, name: &str| {
        let data_type = random_type(random, depth - 1);
        Field::new(name, data_type, !random.is_one_in(3))
    };
    match kind {
        0..=2 => {
            let fields = (0..=random.below(3)).map(|index| child(random, &format!("f{index}")));
            DataType::Struct(fields.collect())
        }
        3..=4 => DataType::List(Arc::new(child(random, "element"))),
        5 => DataType::LargeList(Arc::new(child(random, "element"))),
        6 => {
            let key = Field::new("key", DataType::Utf8, false);
            let entries = Field::new_struct("key_value", vec![key, child(random, "value")], false);
            DataType::Map(Arc::new(entries), false)
        }
        _ => leaves[random.below(leaves.len())].clone(),
    }
}

fn random_nulls(random: &mut Random, count: usize, is_nullable: bool) -> Option<NullBuffer> {
    if !is_nullable {
        return None;
    }
    let run = 1 + random.below(40);
    match random.below(5) {
        0 => None,
        1 => Some(NullBuffer::new_null(count)),
        2 => Some(BooleanBuffer::from_iter((0..count).map(|slot| (slot / run).is_multiple_of(2))).into()),
        odds => Some(BooleanBuffer::from_iter((0..count).map(|_| !random.is_one_in(2 * odds))).into()),
    }
}

/// An array whose null slots hold arbitrary values, and whose lists have elements even where they are null.
fn random_array(random: &mut Random, field: &Field, count: usize) -> ArrayRef {
    let nulls = random_nulls(random, count, field.is_nullable());
    let offsets = |random: &mut Random| {
        let mut end = random.below(3);
        let mut offsets = vec![end];
        offsets.extend((0..count).map(|_| {
            end += if random.is_one_in(2) { 0 } else { random.below(4) };
            end
        }));
        offsets
    };
    match field.data_type() {
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| random_array(random, field, count)).collect();
            Arc::new(StructArray::new(fields.clone(), columns, nulls))
        }
        DataType::List(element) => {
            let offsets = offsets(random);
            let length = offsets[count] + random.below(3);
            let values = random_array(random, element, length);
            let offsets = OffsetBuffer::new(offsets.into_iter().map(|offset| offset as i32).collect());
            Arc::new(ListArray::new(element.clone(), offsets, values, nulls))
        }
        DataType::LargeList(element) => {
            let offsets = offsets(random);
            let length = offsets[count] + random.below(3);
            let values = random_array(random, element, length);
            let offsets = OffsetBuffer::new(offsets.into_iter().map(|offset| offset as i64).collect());
            Arc::new(LargeListArray::new(element.clone(), offsets, values, nulls))
        }
        DataType::Map(entries, _) => {
            let offsets = offsets(random);
            let length = offsets[count] + random.below(3);
            let values = random_array(random, entries, length);
            let offsets = OffsetBuffer::new(offsets.into_iter().map(|offset| offset as i32).collect());
            Arc::new(MapArray::new(entries.clone(), offsets, values.as_struct().clone(), nulls, false))
        }
        leaf => random_leaf(random, leaf, count, nulls),
    }
}

fn random_leaf(random: &mut Random, leaf: &DataType, count: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    // Few distinct values, many, or a sequence.
    let distinct = [1, 3, 300, 1 << 20][random.below(4)];
    let is_sequence = random.is_one_in(6);
    let small = |random: &mut Random, slot: usize| if is_sequence { slot } else { random.below(distinct) };
    macro_rules! numbers {
        ($type:ty, $value:expr) => {{
            let values = (0..count).map(|slot| small(random, slot)).collect::<Vec<_>>();
            let values = values.into_iter().map($value).collect::<ScalarBuffer<_>>();
            Arc::new(PrimitiveArray::<$type>::new(values, nulls).with_data_type(leaf.clone()))
        }};
    }
    let mixed = |n: usize| (n as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
    let far = random.is_one_in(2);
    let long = move |n: usize| if far { mixed(n) } else { n as i64 - 100 };
    match leaf {
        DataType::Boolean => {
            let values = BooleanBuffer::from_iter((0..count).map(|slot| small(random, slot) % 2 == 0));
            Arc::new(BooleanArray::new(values, nulls))
        }
        DataType::Int8 => numbers!(Int8Type, |n| long(n) as i8),
        DataType::Int16 => numbers!(Int16Type, |n| long(n) as i16),
        DataType::Int32 => numbers!(Int32Type, |n| long(n) as i32),
        DataType::Date32 => numbers!(Date32Type, |n| long(n) as i32),
        DataType::Int64 => numbers!(Int64Type, long),
        DataType::Time64(_) => numbers!(Time64MicrosecondType, |n| n as i64),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers!(TimestampMicrosecondType, long),
        DataType::Timestamp(_, _) => numbers!(TimestampNanosecondType, long),
        DataType::Float32 => numbers!(Float32Type, |n| float(n) as f32),
        DataType::Float64 => numbers!(Float64Type, float),
        DataType::Decimal128(precision, _) => {
            let limit = 10_i128.pow((*precision).into());
            numbers!(Decimal128Type, |n| (i128::from(long(n)) * i128::from(mixed(n + 1))) % limit)
        }
        DataType::Dictionary(key, value) => {
            let size = distinct.min(100);
            let nullable = Field::new("", value.as_ref().clone(), nulls.is_some());
            let values = random_array(random, &nullable, size);
            let keys: Vec<usize> = (0..count).map(|_| random.below(size)).collect();
            match key.as_ref() {
                DataType::UInt8 => dictionary::<UInt8Type>(keys.iter().map(|&key| key as u8), nulls, values),
                DataType::Int16 => dictionary::<Int16Type>(keys.iter().map(|&key| key as i16), nulls, values),
                _ => dictionary::<Int32Type>(keys.iter().map(|&key| key as i32), nulls, values),
            }
        }
        DataType::FixedSizeBinary(length) => {
            let bytes = (0..count).flat_map(|slot| {
                let number = mixed(small(random, slot)).to_be_bytes();
                number.into_iter().cycle().take(*length as usize).collect::<Vec<_>>()
            });
            let bytes = bytes.collect::<Vec<u8>>();
            Arc::new(FixedSizeBinaryArray::new(*length, bytes.into(), nulls))
        }
        _ => {
            let is_text = matches!(leaf, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            let texts: Vec<Vec<u8>> = (0..count).map(|slot| text(small(random, slot), is_text)).collect();
            let valid = |slot: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(slot));
            let bytes =
                || texts.iter().enumerate().map(|(slot, text)| valid(slot).then_some(text.as_slice()));
            let strings = || bytes().map(|bytes| bytes.map(|bytes| std::str::from_utf8(bytes).unwrap()));
            match leaf {
                DataType::Utf8 => Arc::new(strings().collect::<StringArray>()),
                DataType::LargeUtf8 => Arc::new(strings().collect::<LargeStringArray>()),
                DataType::Utf8View => Arc::new(strings().collect::<StringViewArray>()),
                DataType::Binary => Arc::new(bytes().collect::<BinaryArray>()),
                DataType::LargeBinary => Arc::new(bytes().collect::<LargeBinaryArray>()),
                DataType::BinaryView => Arc::new(bytes().collect::<BinaryViewArray>()),
                other => panic!("no values of {other}"),
            }
        }
    }
}

fn dictionary<K: ArrowDictionaryKeyType>(
    keys: impl Iterator<Item = K::Native>,
    nulls: Option<NullBuffer>,
    values: ArrayRef,
) -> ArrayRef {
    let keys = PrimitiveArray::<K>::new(keys.collect(), nulls);
    Arc::new(DictionaryArray::<K>::new(keys, values))
}

/// NaN, infinities and both zeros are among the numbers of many distinct values.
fn float(number: usize) -> f64 {
    match number {
        1 => -0.0,
        2 => 0.0,
        299 => f64::NAN,
        298 => f64::NEG_INFINITY,
        _ => (number as f64 - 50.0) / 8.0,
    }
}

/// Texts around the length at which bounds are truncated, with characters and bytes that cannot be incremented.
fn text(number: usize, is_text: bool) -> Vec<u8> {
    let mut bytes = format!("{}", number % 1000).into_bytes();
    let tail: &[u8] = match (number % 7, is_text) {
        (0, true) => "\u{10ffff}".as_bytes(),
        (1, true) => "é".as_bytes(),
        (2, true) => "\u{d7ff}".as_bytes(),
        (0, false) => &[0xff],
        (1, false) => &[0, 0xff],
        _ => b"z",
    };
    match number % 5 {
        0 => bytes.truncate(number % 3),
        1 => (0..20 + number % 9).for_each(|_| bytes.extend_from_slice(tail)),
        2 => bytes = tail.repeat(70),
        _ => {}
    }
    bytes
}

pub fn random_batch(random: &mut Random, schema: &SchemaRef, rows: usize) -> RecordBatch {
    // The arrays of a slice have offsets.
    let (before, after) = (random.below(9), random.below(3));
    let fields = schema.fields().iter();
    let columns = fields.map(|field| random_array(random, field, before + rows + after)).collect();
    RecordBatch::try_new(schema.clone(), columns).unwrap().slice(before, rows)
}
