//! Compress pages.

use std::cell::RefCell;
use std::io::Write;

use bytes::Bytes;
use flate2::write::GzEncoder;
use parquet::basic::Compression;
use zstd::bulk::Compressor;

use crate::error::{Error, Result};

/// A context of zstd takes longer to set up than a small page to compress, so each thread keeps one.
struct Zstd {
    level: i32,
    compressor: Compressor<'static>,
    buffer: Vec<u8>,
}

thread_local! {
    static ZSTD: RefCell<Option<Zstd>> = const { RefCell::new(None) };
}

/// Return `page` compressed by `codec`.
pub(super) fn compress(codec: Compression, page: &[u8]) -> Result<Bytes> {
    Ok(match codec {
        Compression::UNCOMPRESSED => Bytes::copy_from_slice(page),
        Compression::ZSTD(level) => {
            ZSTD.with_borrow_mut(|kept| zstd(kept, level.compression_level(), page))?
        }
        Compression::SNAPPY => {
            snap::raw::Encoder::new().compress_vec(page).map_err(|error| failed(&error))?.into()
        }
        Compression::LZ4_RAW => lz4_flex::block::compress(page).into(),
        Compression::GZIP(level) => {
            let level = flate2::Compression::new(level.compression_level());
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(page).map_err(|error| failed(&error))?;
            encoder.finish().map_err(|error| failed(&error))?.into()
        }
        other => return Err(Error::unsupported(format!("cannot compress pages as {other}"))),
    })
}

fn zstd(kept: &mut Option<Zstd>, level: i32, page: &[u8]) -> Result<Bytes> {
    let zstd = match kept {
        Some(zstd) if zstd.level == level => zstd,
        _ => {
            let compressor = Compressor::new(level).map_err(|error| failed(&error))?;
            kept.insert(Zstd { level, compressor, buffer: Vec::new() })
        }
    };
    zstd.buffer.clear();
    zstd.buffer.reserve(zstd::zstd_safe::compress_bound(page.len()));
    let length = zstd.compressor.compress_to_buffer(page, &mut zstd.buffer);
    length.map_err(|error| failed(&error))?;
    Ok(Bytes::copy_from_slice(&zstd.buffer))
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::data_file(format!("cannot compress a page: {error}"))
}
