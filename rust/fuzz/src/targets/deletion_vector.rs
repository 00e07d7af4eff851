//! Serialized deletion vectors.

use _native::deletion_vector;

pub fn run(input: &[u8]) {
    let Ok(rows) = deletion_vector::rows(input) else { return };
    if let (Some(first), Some(last)) = (rows.min(), rows.max()) {
        assert!(first <= last && rows.contains(first) && rows.contains(last));
        assert_eq!(rows.range_cardinality(first..last) + 1, rows.len());
    }
}
