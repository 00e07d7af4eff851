//! Deletion vectors: which rows of a data file are deleted (PROTOCOL.md, Deletion Vector Format).

use std::ops::Range;

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
        // Java reads the upper half of a number as a signed integer.
        [] if rows.max().is_some_and(|row| i64::try_from(row).is_err()) => {
            Err(malformed("a number exceeds 63 bits"))
        }
        [] => Ok(rows),
        _ => Err(malformed(&format!("{} bytes follow its last bitmap", rest.len()))),
    }
}

/// The rows in `deleted` and `more`, as a serialized `RoaringBitmapArray`, and their number.
pub fn add_rows(deleted: Option<&[u8]>, more: impl IntoIterator<Item = u64>) -> Result<(Vec<u8>, u64)> {
    let mut all = rows_or_none(deleted)?;
    all.extend(more);
    all.optimize();
    let mut bytes = Vec::with_capacity(MAGIC.len() + all.serialized_size());
    bytes.extend(MAGIC);
    all.serialize_into(&mut bytes).map_err(|error| malformed(&error.to_string()))?;
    Ok((bytes, all.len()))
}

/// The rows in `deleted` but not in `others`, as ordered half-open ranges with a gap between any two.
pub fn subtract_rows(deleted: Option<&[u8]>, others: Option<&[u8]>) -> Result<Vec<(u64, u64)>> {
    let rows = rows_or_none(deleted)? - rows_or_none(others)?;
    Ok(ranges(&rows).into_iter().map(|range| (range.start, range.end)).collect())
}

/// Those of the rows that are in `range`, in order.
pub fn rows_within(rows: &RoaringTreemap, range: Range<u64>) -> impl Iterator<Item = u64> {
    rows.bitmaps().flat_map(move |(high, bitmap)| {
        let first = u64::from(high) << 32;
        let bounds = [range.start, range.end].map(|row| row.saturating_sub(first).min(1 << 32));
        // Each bound is at most 2^32, so the last row fits in 32 bits.
        let within = (bounds[0] < bounds[1]).then(|| bitmap.range(bounds[0] as u32..=(bounds[1] - 1) as u32));
        within.into_iter().flatten().map(move |row| first + u64::from(row))
    })
}

/// The rows as ordered ranges with a gap between any two.
fn ranges(rows: &RoaringTreemap) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for (high, bitmap) in rows.bitmaps() {
        let first = u64::from(high) << 32;
        // The iterator of ranges is slower where these are short.
        for row in bitmap.iter().map(|row| first + u64::from(row)) {
            match ranges.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => ranges.push(row..row + 1),
            }
        }
    }
    ranges
}

fn rows_or_none(bytes: Option<&[u8]>) -> Result<RoaringTreemap> {
    Ok(bytes.map(rows).transpose()?.unwrap_or_default())
}

fn malformed(why: &str) -> Error {
    Error::data_file(format!("malformed deletion vector: {why}"))
}
