//! Buffers of text that are used again once their array is dropped.
//!
//! The memory of a large buffer goes back to the operating system when it is freed, and each page of a new one is a
//! page fault. Faults of several threads wait for each other.

use std::sync::{Arc, Mutex, Weak};

use arrow_buffer::Buffer;
use bytes::Bytes;

/// The maximum of bytes of unused buffers; larger ones are freed.
const UNUSED_BYTES: usize = 32 << 20;

/// The unused buffers of one read.
#[derive(Debug, Clone, Default)]
pub struct TextBuffers(Arc<Unused>);

type Unused = Mutex<Vec<Vec<u8>>>;

impl TextBuffers {
    /// Return an empty buffer, with the memory of an unused one if there is any.
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.lock().ok().and_then(|mut unused| unused.pop()).unwrap_or_default()
    }

    /// Return `text` as a buffer of an array, and take its memory back when that is dropped.
    pub(super) fn lend(&self, text: Vec<u8>) -> Buffer {
        Buffer::from(Bytes::from_owner(Lent { text, owner: Arc::downgrade(&self.0) }))
    }
}

struct Lent {
    text: Vec<u8>,
    owner: Weak<Unused>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(owner) = self.owner.upgrade() else { return };
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        if let Ok(mut unused) = owner.lock()
            && unused.iter().map(Vec::capacity).sum::<usize>() + text.capacity() <= UNUSED_BYTES
        {
            unused.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_dropped_buffer_is_used_again() {
        let buffers = TextBuffers::default();
        let lent = buffers.lend(b"text".to_vec());
        let (address, shared) = (lent.as_ptr(), lent.clone());
        drop(lent);
        assert!(buffers.take().is_empty());
        assert_eq!(shared.as_slice(), b"text");
        drop(shared);
        let taken = buffers.take();
        assert_eq!((taken.as_ptr(), taken.len()), (address, 0));
    }

    #[test]
    fn buffers_outlive_their_owner() {
        let buffers = TextBuffers::default();
        let lent = buffers.lend(b"text".to_vec());
        drop(buffers);
        assert_eq!(lent.as_slice(), b"text");
    }

    #[test]
    fn large_buffers_are_freed() {
        let buffers = TextBuffers::default();
        drop(buffers.lend(vec![0; UNUSED_BYTES + 1]));
        assert_eq!(buffers.take().capacity(), 0);
        let lent = [0, 1].map(|_| buffers.lend(vec![0; UNUSED_BYTES / 2 + 1]));
        drop(lent);
        assert!(buffers.take().capacity() > 0);
        assert_eq!(buffers.take().capacity(), 0);
    }
}
