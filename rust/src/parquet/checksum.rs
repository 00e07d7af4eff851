//! The checksums of pages (Parquet format, "Checksumming").

use flate2::Crc;

use super::thrift::PageSizes;
use crate::error::{Error, Result};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc32([b"1234".as_slice(), b"56789"]), 0xcbf4_3926);
    }
}
