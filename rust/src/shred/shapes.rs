//! The `metadata` column: each distinct metadata is parsed once, and the data that a reader derives from it is cached.

use std::collections::HashMap;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array};
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::value::Metadata;
use crate::value::column::Bytes;

/// The number of distinct metadata that are cached before the cache is cleared: it bounds the memory.
const MAX_SHAPES: usize = 4096;

/// One metadata, and the data derived from it.
#[derive(Debug)]
pub(crate) struct Shape<'a, T> {
    pub metadata: Metadata<'a>,
    /// By id.
    pub names: Vec<&'a str>,
    pub derived: T,
}

/// The distinct metadata of a column.
pub(crate) struct Shapes<'a, T> {
    bytes: Bytes<'a>,
    /// Positions in `bytes`, where the column is a dictionary.
    keys: Option<&'a Int32Array>,
    derive: Box<dyn Fn(&Metadata<'a>) -> T + 'a>,
    shapes: Vec<Shape<'a, T>>,
    by_bytes: HashMap<&'a [u8], usize, ahash::RandomState>,
    /// The metadata of the previous row, and its shape.
    last: (&'a [u8], usize),
    /// The shape of each key, or `UNKNOWN`; empty where the column is not a dictionary, or a large one.
    by_key: Vec<u32>,
}

const UNKNOWN: u32 = u32::MAX;

impl<'a, T> Shapes<'a, T> {
    pub fn new(column: &'a dyn Array, derive: impl Fn(&Metadata<'a>) -> T + 'a) -> Result<Self> {
        let (bytes, keys) = match column.data_type() {
            DataType::Dictionary(_, _) => {
                let dictionary = column.as_any_dictionary_opt().map(|d| d.values());
                let keys = column.as_dictionary_opt::<Int32Type>().map(|d| d.keys());
                match (dictionary, keys) {
                    (Some(values), Some(keys)) => (Bytes::new(values)?, Some(keys)),
                    _ => return Err(Error::unsupported("the keys of a dictionary are int32")),
                }
            }
            _ => (Bytes::new(column)?, None),
        };
        let (derive, by_bytes) = (Box::new(derive), HashMap::default());
        let values = column.as_any_dictionary_opt().map_or(0, |dictionary| dictionary.values().len());
        // The rows may be few, and the dictionary is that of the whole row group.
        let by_key = vec![UNKNOWN; if values <= column.len() { values } else { 0 }];
        Ok(Shapes { bytes, keys, derive, shapes: Vec::new(), by_bytes, last: (&[], usize::MAX), by_key })
    }

    /// The metadata of the row at `index`.
    pub fn at(&mut self, index: usize) -> Result<&mut Shape<'a, T>> {
        let key = self.keys.filter(|keys| keys.is_valid(index)).map(|keys| keys.value(index) as usize);
        let known = key.and_then(|key| self.by_key.get(key)).map_or(UNKNOWN, |&shape| shape) as usize;
        if known < self.shapes.len() {
            return Ok(&mut self.shapes[known]);
        }
        let shape = self.find(index)?;
        if let Some(known) = key.and_then(|key| self.by_key.get_mut(key)) {
            *known = shape as u32;
        }
        Ok(&mut self.shapes[shape])
    }

    /// The position of the shape of the row at `index`.
    fn find(&mut self, index: usize) -> Result<usize> {
        let bytes = match self.keys {
            Some(keys) if keys.is_null(index) => None,
            Some(keys) => self.bytes.get(keys.value(index) as usize),
            None => self.bytes.get(index),
        };
        let bytes = bytes.ok_or_else(|| Error::variant("malformed Variant: `metadata` is null"))?;
        let known = if bytes == self.last.0 { Some(self.last.1) } else { self.by_bytes.get(bytes).copied() };
        let shape = match known.filter(|&shape| shape < self.shapes.len()) {
            Some(shape) => shape,
            None => self.add(bytes)?,
        };
        self.last = (bytes, shape);
        Ok(shape)
    }

    fn add(&mut self, bytes: &'a [u8]) -> Result<usize> {
        if self.shapes.len() == MAX_SHAPES {
            self.shapes.clear();
            self.by_bytes.clear();
            self.by_key.fill(UNKNOWN);
        }
        let metadata = Metadata::parse(bytes)?;
        let derived = (self.derive)(&metadata);
        self.by_bytes.insert(bytes, self.shapes.len());
        self.shapes.push(Shape { metadata, names: metadata.names().collect(), derived });
        Ok(self.shapes.len() - 1)
    }
}

/// A column of bytes as plain binary, its nulls kept.
pub(crate) fn to_binary(column: &ArrayRef) -> Result<BinaryArray> {
    match column.data_type() {
        DataType::Binary => Ok(column.as_binary::<i32>().clone()),
        DataType::Dictionary(_, _) => {
            let dictionary = column.as_dictionary::<Int32Type>();
            to_binary(&arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?)
        }
        _ => {
            let bytes = Bytes::new(column)?;
            let mut builder = BinaryBuilder::with_capacity(column.len(), 0);
            (0..column.len()).for_each(|index| builder.append_option(bytes.get(index)));
            Ok(builder.finish())
        }
    }
}
