//! Read Bloom filters, by which readers skip row groups that lack a value (parquet.thrift, BloomFilterHeader).

use bytes::{Buf, Bytes};
use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::read::{ParquetFile, guarded};
use crate::error::{Error, Result};

/// Return the Bloom filter of a column chunk, `None` without one.
pub(super) fn bloom_filter(file: &ParquetFile, row_group: usize, leaf: usize) -> Result<Option<Sbbf>> {
    let chunk = file.row_groups()[row_group].column(leaf);
    let filter = guarded(|| Ok(Sbbf::read_from_column_chunk(chunk, &Ranges(file))?))
        .map_err(|error| error.in_column(&chunk.column_path().string()))?;
    match filter {
        Some(filter) if filter.num_blocks() == 0 => {
            Err(Error::data_file("the Bloom filter has no blocks").in_column(&chunk.column_path().string()))
        }
        filter => Ok(filter),
    }
}

/// The bytes of a file, fetched range by range: early writers do not state how long a filter is.
struct Ranges<'a>(&'a ParquetFile);

impl Length for Ranges<'_> {
    fn len(&self) -> u64 {
        self.0.length()
    }
}

impl ChunkReader for Ranges<'_> {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        Ok(self.get_bytes(start, self.len().saturating_sub(start) as usize)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<Bytes, ParquetError> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len());
        let outside = || ParquetError::EOF("the Bloom filter is not within the file".into());
        let range = start..end.ok_or_else(outside)?;
        let chunks =
            self.0.fetch(vec![range.clone()]).map_err(|error| ParquetError::External(Box::new(error)))?;
        chunks.slice(range).ok_or_else(outside)
    }
}
