//! A sink that completes the end of a file before it is written.

use std::io::{Result, Write};
use std::mem::take;

use super::checksum::seal;

/// Passes bytes on, except for the end of a file, which is held until its footer is complete.
pub(super) struct Sealing<W> {
    sink: W,
    end: Option<Vec<u8>>,
}

impl<W: Write> Sealing<W> {
    pub(super) fn new(sink: W) -> Self {
        Sealing { sink, end: None }
    }

    /// Hold all bytes from here on.
    pub(super) fn hold(&mut self) {
        self.end = Some(Vec::new());
    }

    /// Write the bytes held, with the checksum of the footer.
    pub(super) fn seal(&mut self) -> Result<()> {
        let mut end = take(&mut self.end).unwrap_or_default();
        seal(&mut end);
        self.sink.write_all(&end)?;
        self.sink.flush()
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match &mut self.end {
            Some(end) => end.write(bytes),
            None => self.sink.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self.end {
            Some(_) => Ok(()),
            None => self.sink.flush(),
        }
    }
}
