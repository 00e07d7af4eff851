//! The parsed footers of the files that this process opened last, by their bytes.
//!
//! A query opens the files of the query before again, and parsing a footer takes longer than reading it. A footer is
//! found by all of its bytes and by the length of its file, so a file that was replaced is not taken for the old one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::file::metadata::ParquetMetaData;

/// The maximum of the bytes of all footers that are kept. Parsed, they take several times as much memory.
const MAX_BYTES: usize = 2 << 20;
/// The maximum of the bytes of one footer.
const MAX_FOOTER_BYTES: usize = MAX_BYTES / 8;
/// The maximum number of footers.
const MAX_FOOTERS: usize = 64;

/// A footer that was parsed and checked.
#[derive(Debug, Clone)]
pub(super) struct Footer {
    pub metadata: Arc<ParquetMetaData>,
    pub arrow_schema: SchemaRef,
}

#[derive(Debug)]
struct Entry {
    bytes: Bytes,
    file_length: u64,
    footer: Footer,
}

/// Footers, the one that was used last in front.
#[derive(Debug)]
struct Footers(VecDeque<Entry>);

static FOOTERS: Mutex<Footers> = Mutex::new(Footers(VecDeque::new()));

/// Return the footer with these bytes, of a file of this length, if it is known.
pub(super) fn known(bytes: &[u8], file_length: u64) -> Option<Footer> {
    // A process that was forked while another thread held the lock never gets it.
    FOOTERS.try_lock().ok()?.find(bytes, file_length)
}

/// Keep a footer, and forget those that were not used for the longest time.
pub(super) fn keep(bytes: &[u8], file_length: u64, footer: &Footer) {
    if bytes.len() <= MAX_FOOTER_BYTES
        && let Ok(mut footers) = FOOTERS.try_lock()
    {
        footers.insert(Entry { bytes: Bytes::copy_from_slice(bytes), file_length, footer: footer.clone() });
    }
}

impl Footers {
    fn find(&mut self, bytes: &[u8], file_length: u64) -> Option<Footer> {
        let is_same = |entry: &Entry| entry.file_length == file_length && entry.bytes == bytes;
        let position = self.0.iter().position(is_same)?;
        let entry = self.0.remove(position)?;
        let footer = entry.footer.clone();
        self.0.push_front(entry);
        Some(footer)
    }

    fn insert(&mut self, entry: Entry) {
        self.0.push_front(entry);
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            bytes += entry.bytes.len();
            bytes <= MAX_BYTES
        };
        let kept = self.0.iter().take_while(fits).count();
        self.0.truncate(kept.min(MAX_FOOTERS));
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Schema;
    use parquet::basic::Type as PhysicalType;
    use parquet::file::metadata::FileMetaData;
    use parquet::schema::types::{SchemaDescriptor, Type};

    use super::*;

    fn footer(rows: i64) -> Footer {
        let leaf = Arc::new(Type::primitive_type_builder("x", PhysicalType::INT32).build().unwrap());
        let root = Type::group_type_builder("root").with_fields(vec![leaf]).build().unwrap();
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
        let file = FileMetaData::new(1, rows, None, None, schema, None);
        let metadata = Arc::new(ParquetMetaData::new(file, Vec::new()));
        Footer { metadata, arrow_schema: Arc::new(Schema::empty()) }
    }

    fn entry(bytes: Vec<u8>, file_length: u64, rows: i64) -> Entry {
        Entry { bytes: bytes.into(), file_length, footer: footer(rows) }
    }

    fn rows(footers: &mut Footers, bytes: &[u8], file_length: u64) -> Option<i64> {
        Some(footers.find(bytes, file_length)?.metadata.file_metadata().num_rows())
    }

    #[test]
    fn a_footer_is_found_by_its_bytes_and_the_length_of_its_file() {
        let mut footers = Footers(VecDeque::new());
        footers.insert(entry(b"first".to_vec(), 100, 1));
        footers.insert(entry(b"other".to_vec(), 100, 2));
        footers.insert(entry(b"first".to_vec(), 101, 3));
        assert_eq!(rows(&mut footers, b"first", 100), Some(1));
        assert_eq!(rows(&mut footers, b"other", 100), Some(2));
        assert_eq!(rows(&mut footers, b"first", 101), Some(3));
        assert_eq!(rows(&mut footers, b"other", 101), None);
        assert_eq!(rows(&mut footers, b"firs", 100), None);
    }

    #[test]
    fn the_footers_that_were_used_last_are_kept() {
        let mut footers = Footers(VecDeque::new());
        for number in 0..MAX_FOOTERS as u64 {
            footers.insert(entry(b"footer".to_vec(), number, 0));
        }
        assert!(rows(&mut footers, b"footer", 0).is_some());
        footers.insert(entry(b"footer".to_vec(), 1000, 0));
        assert_eq!(footers.0.len(), MAX_FOOTERS);
        assert!(rows(&mut footers, b"footer", 0).is_some());
        assert!(rows(&mut footers, b"footer", 1).is_none());
    }

    #[test]
    fn the_bytes_of_all_footers_are_bounded() {
        let mut footers = Footers(VecDeque::new());
        for number in 0..20 {
            footers.insert(entry(vec![0; MAX_FOOTER_BYTES], number, 0));
        }
        let bytes: usize = footers.0.iter().map(|entry| entry.bytes.len()).sum();
        assert_eq!(bytes, MAX_BYTES);
        assert!(rows(&mut footers, &vec![0; MAX_FOOTER_BYTES], 19).is_some());
    }
}
