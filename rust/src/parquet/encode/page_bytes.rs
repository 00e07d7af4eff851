//! The encoded pages of a column chunk, in memory.

use std::collections::VecDeque;
use std::io::Read;

use bytes::{Buf, Bytes};
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// Pages that follow each other. Each has memory of its own: one buffer would take twice its size whenever it grows, and
/// its old memory would stay as holes.
#[derive(Clone, Default)]
pub(in crate::parquet) struct PageBytes {
    pages: VecDeque<Bytes>,
    length: usize,
}

impl PageBytes {
    pub fn push(&mut self, page: Bytes) {
        self.length += page.len();
        self.pages.push_back(page);
    }

    pub fn push_front(&mut self, page: Bytes) {
        self.length += page.len();
        self.pages.push_front(page);
    }

    /// The bytes of all pages.
    pub fn size(&self) -> usize {
        self.length
    }

    fn skip(&mut self, mut bytes: usize) {
        while let Some(page) = self.pages.front_mut() {
            let skipped = bytes.min(page.len());
            page.advance(skipped);
            (self.length, bytes) = (self.length - skipped, bytes - skipped);
            if !page.is_empty() {
                return;
            }
            self.pages.pop_front();
        }
    }
}

impl Read for PageBytes {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(page) = self.pages.front() else { return Ok(0) };
        let length = buffer.len().min(page.len());
        buffer[..length].copy_from_slice(&page[..length]);
        self.skip(length);
        Ok(length)
    }
}

impl Length for PageBytes {
    fn len(&self) -> u64 {
        self.length as u64
    }
}

impl ChunkReader for PageBytes {
    type T = PageBytes;

    fn get_read(&self, start: u64) -> Result<PageBytes> {
        let mut rest = self.clone();
        rest.skip(usize::try_from(start).unwrap_or(usize::MAX));
        Ok(rest)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> PageBytes {
        let mut pages = PageBytes::default();
        [b"cd".as_slice(), b"", b"efg"].into_iter().for_each(|page| pages.push(Bytes::from_static(page)));
        pages.push_front(Bytes::from_static(b"ab"));
        pages
    }

    #[test]
    fn pages_are_read_in_their_order_from_any_byte() {
        let pages = pages();
        assert_eq!(pages.size(), 7);
        for start in 0..=8 {
            let mut rest = String::new();
            pages.get_read(start).unwrap().read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "abcdefg".get(start as usize..).unwrap_or_default());
        }
        assert_eq!(pages.get_bytes(1, 4).unwrap(), "bcde");
    }

    #[test]
    fn bytes_after_the_last_page_are_an_error() {
        assert!(pages().get_bytes(5, 3).is_err());
    }
}
