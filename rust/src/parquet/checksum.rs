//! Checksums: of pages, as the format defines them, and of the footer, for which the format has none.
//!
//! The checksum of a footer is an entry of its key-value metadata, which other readers ignore.

use std::ops::Range;

use flate2::Crc;
use memchr::memmem;
use parquet::file::metadata::KeyValue;

use super::thrift::PageSizes;
use crate::error::{Error, Result};

/// The name of this library in footers, before its version.
pub(super) const CREATED_BY: &str = "delta-variant version ";
/// The key of the CRC-32 of a footer, as eight hexadecimal digits, computed while these are zeros.
const KEY: &str = "deltaVariant.footerChecksum";
const ZEROS: &str = "00000000";
/// The bytes of Thrift between a key and its value of eight bytes: field 2, a string.
const VALUE: [u8; 2] = [0x18, 8];
/// Length of the footer and the magic, at the end of a file.
const TAIL_BYTES: usize = 8;

/// The CRC-32 of gzip.
pub(super) fn crc32<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut crc = Crc::new();
    parts.into_iter().for_each(|part| crc.update(part));
    crc.sum()
}

/// Check the stored bytes of a page against the checksum in its header, if it has one.
pub(super) fn check_page(header: PageSizes, page: &[u8], row_group: usize) -> Result<()> {
    match header.checksum {
        Some(checksum) if checksum != crc32([page]) => Err(Error::data_file(format!(
            "the checksum of a page of row group {row_group} does not match its bytes: the file is damaged, \
             restore it from a copy"
        ))),
        _ => Ok(()),
    }
}

/// The entry of a footer for its checksum, which `seal` sets.
pub(super) fn footer_entry() -> KeyValue {
    KeyValue::new(KEY.to_owned(), ZEROS.to_owned())
}

/// Set the checksum of the footer at the end of a file, if it has the entry for it.
pub(super) fn seal(end: &mut [u8]) {
    let Some(tail) = end.len().checked_sub(TAIL_BYTES) else { return };
    let length = end[tail..].first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
    let Some(start) = tail.checked_sub(length as usize) else { return };
    let footer = &mut end[start..tail];
    if let Some(value) = checksum_range(footer) {
        let checksum = format!("{:08x}", footer_checksum(footer, &value));
        footer[value].copy_from_slice(checksum.as_bytes());
    }
}

/// Check a footer against its checksum, if it has one.
pub(super) fn check_footer(footer: &[u8]) -> Result<()> {
    match checksum_range(footer) {
        Some(value)
            if footer[value.clone()] != *format!("{:08x}", footer_checksum(footer, &value)).as_bytes() =>
        {
            Err(Error::data_file(
                "the checksum of the Parquet file's footer does not match its bytes: the file is damaged, \
                 restore it from a copy",
            ))
        }
        _ => Ok(()),
    }
}

fn footer_checksum(footer: &[u8], value: &Range<usize>) -> u32 {
    crc32([&footer[..value.start], ZEROS.as_bytes(), &footer[value.end..]])
}

fn checksum_range(footer: &[u8]) -> Option<Range<usize>> {
    let start = memmem::rfind(footer, &[KEY.as_bytes(), &VALUE].concat())? + KEY.len() + VALUE.len();
    let end = start + ZEROS.len();
    (end <= footer.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        let footer = [b"before".as_slice(), KEY.as_bytes(), &VALUE, ZEROS.as_bytes(), b"after"].concat();
        let length = (footer.len() as u32).to_le_bytes();
        let mut end = [b"index".as_slice(), &footer, &length, b"PAR1"].concat();
        seal(&mut end);
        end
    }

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc32([b"1234".as_slice(), b"56789"]), 0xcbf4_3926);
    }

    #[test]
    fn each_changed_bit_of_a_sealed_footer_is_found_except_in_the_key() {
        let end = sealed();
        let footer = &end[5..end.len() - TAIL_BYTES];
        check_footer(footer).unwrap();
        let key = 6..6 + KEY.len() + VALUE.len();
        for bit in (0..footer.len() * 8).filter(|bit| !key.contains(&(bit / 8))) {
            let mut damaged = footer.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(check_footer(&damaged).is_err(), "{bit}");
        }
    }

    #[test]
    fn a_footer_without_the_entry_is_unchanged_and_passes() {
        let mut end = *b"footer\x06\0\0\0PAR1";
        seal(&mut end);
        assert_eq!(&end, b"footer\x06\0\0\0PAR1");
        check_footer(&end[..6]).unwrap();
        seal(&mut [0; 4]);
        seal(&mut [0xff; 9]);
    }
}
