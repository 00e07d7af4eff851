//! A check of the decompressed size that a page header states, without the memory to decompress the page.
//!
//! The decoder reserves that many bytes before it decompresses. A valid page may be as large as the format
//! allows: one value of 128 MiB of blanks takes 4 kB in zstd. So no bound on the ratio tells a damaged header
//! from a valid one. Sizes that a codec cannot reach are rejected, and the others are counted.

use std::io::{self, Read};

use parquet::basic::Compression;

use super::thrift::PageSizes;
use crate::error::{Error, Result};

/// Pages up to this size are not checked: the decoder may reserve this much memory for any header.
const TRUSTED_BYTES: u64 = 16 << 20;
/// The most bytes that DEFLATE makes of one: two bits stand for a match of 258 bytes.
const DEFLATE_RATIO: u64 = 1032;
/// LZ4 adds at most 255 bytes for each byte of a match length, and Snappy 64 for a copy of three bytes.
const LZ4_RATIO: u64 = 255;
const COUNTING_BUFFER: usize = 64 << 10;

/// Check that a large `page` decompresses to the number of bytes in `sizes`.
pub(super) fn check_unpacked_size(sizes: PageSizes, page: &[u8], codec: Compression) -> Result<()> {
    if sizes.unpacked <= TRUSTED_BYTES || !sizes.is_compressed {
        return Ok(());
    }
    let wrong = || {
        let PageSizes { stored, unpacked, .. } = sizes;
        Error::data_file(format!(
            "a page of {stored} bytes does not decompress to the {unpacked} of its header"
        ))
    };
    let levels = usize::try_from(sizes.levels).unwrap_or(usize::MAX);
    let data = page.get(levels..).ok_or_else(wrong)?;
    let claimed = sizes.unpacked.checked_sub(sizes.levels).ok_or_else(wrong)?;
    let stored = data.len() as u64;
    let is_possible = match codec {
        Compression::ZSTD(_) => count(zstd::Decoder::new(data), claimed) == claimed,
        Compression::BROTLI(_) => {
            count(Ok(brotli_decompressor::Decompressor::new(data, COUNTING_BUFFER)), claimed) == claimed
        }
        Compression::GZIP(_) => claimed <= stored.saturating_mul(DEFLATE_RATIO),
        Compression::SNAPPY | Compression::LZ4 | Compression::LZ4_RAW => {
            claimed <= stored.saturating_mul(LZ4_RATIO)
        }
        // The decoder rejects LZO, and uses an uncompressed page without copying.
        Compression::LZO | Compression::UNCOMPRESSED => true,
    };
    if is_possible { Ok(()) } else { Err(wrong()) }
}

/// Return how many bytes `decoder` yields before an error, at most `most` + 1.
fn count(decoder: io::Result<impl Read>, most: u64) -> u64 {
    let Ok(decoder) = decoder else { return 0 };
    let mut limited = decoder.take(most + 1);
    let mut buffer = vec![0; COUNTING_BUFFER];
    let mut total = 0;
    while let Ok(length @ 1..) = limited.read(&mut buffer) {
        total += length as u64;
    }
    total
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};

    use super::*;

    fn check(page: &[u8], unpacked: u64, codec: Compression) -> Result<()> {
        let stored = page.len() as u64;
        let sizes =
            PageSizes { stored, unpacked, levels: 0, is_compressed: true, checksum: None, encodings: None };
        check_unpacked_size(sizes, page, codec)
    }

    /// 32 MiB of blanks in zstd.
    fn blanks() -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        for _ in 0..32 {
            encoder.write_all(&[b' '; 1 << 20]).unwrap();
        }
        encoder.finish().unwrap()
    }

    #[test]
    fn a_page_that_decompresses_to_the_size_in_its_header_passes() {
        let codec = Compression::ZSTD(ZstdLevel::default());
        check(&blanks(), 32 << 20, codec).unwrap();
        // Levels come first, uncompressed.
        let page = [b"12".as_slice(), &blanks()].concat();
        let (stored, unpacked) = (page.len() as u64, (32 << 20) + 2);
        let sizes =
            PageSizes { stored, unpacked, levels: 2, is_compressed: true, checksum: None, encodings: None };
        check_unpacked_size(sizes, &page, codec).unwrap();
    }

    #[test]
    fn a_page_that_decompresses_to_another_size_is_rejected() {
        let codec = Compression::ZSTD(ZstdLevel::default());
        let error = check(&blanks(), 2 << 30, codec).unwrap_err();
        let length = blanks().len();
        let expected =
            format!("a page of {length} bytes does not decompress to the 2147483648 of its header");
        assert_eq!(error, Error::data_file(expected));
        assert!(check(&blanks(), (32 << 20) - 1, codec).is_err());
        assert!(check(b"not zstd", 32 << 20, codec).is_err());
        assert!(check(b"not brotli", 32 << 20, Compression::BROTLI(BrotliLevel::default())).is_err());
        assert!(check(&[0; 1000], 32 << 20, Compression::GZIP(GzipLevel::default())).is_err());
        assert!(check(&[0; 1000], 32 << 20, Compression::LZ4_RAW).is_err());
        let unpacked = 32 << 20;
        let sizes = PageSizes {
            stored: 1,
            unpacked,
            levels: 2,
            is_compressed: true,
            checksum: None,
            encodings: None,
        };
        assert!(check_unpacked_size(sizes, &[0], codec).is_err());
    }

    #[test]
    fn a_small_page_is_left_to_the_decoder() {
        check(b"not zstd", 16 << 20, Compression::ZSTD(ZstdLevel::default())).unwrap();
    }
}
