//! Deletion vectors: which rows of a data file are deleted (PROTOCOL.md, Deletion Vector Format).

use roaring::RoaringTreemap;

use crate::error::{Error, Result};

/// What a serialized `RoaringBitmapArray` begins with: the portable form for 64-bit numbers follows.
const MAGIC: [u8; 4] = 1_681_511_377_u32.to_le_bytes();

/// The numbers, from 0, of the deleted rows in a serialized `RoaringBitmapArray`.
pub fn rows(bytes: &[u8]) -> Result<RoaringTreemap> {
    let mut rest =
        bytes.strip_prefix(&MAGIC).ok_or_else(|| malformed("it does not begin with its magic number"))?;
    let rows = RoaringTreemap::deserialize_from(&mut rest).map_err(|error| malformed(&error.to_string()))?;
    match rest {
        [] => Ok(rows),
        _ => Err(malformed(&format!("{} bytes follow its last bitmap", rest.len()))),
    }
}

fn malformed(why: &str) -> Error {
    Error::data_file(format!("malformed deletion vector: {why}"))
}
