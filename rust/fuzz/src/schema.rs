//! Shredding schemas decoded from arbitrary bytes.

use std::collections::BTreeMap;

use _native::shred::{LeafType, ShreddingSchema};

/// Maximum nesting depth of a decoded schema.
const MAX_DEPTH: usize = 8;

/// Decode a schema from `bytes`, with field names from `names`. Any bytes are valid.
pub fn from_bytes(bytes: &[u8], names: &[&str]) -> ShreddingSchema {
    read(&mut bytes.iter().copied(), names, 0)
}

fn read(bytes: &mut impl Iterator<Item = u8>, names: &[&str], depth: usize) -> ShreddingSchema {
    let Some(byte) = bytes.next() else { return ShreddingSchema::Untyped };
    match byte {
        200.. if depth < MAX_DEPTH => {
            let fields: BTreeMap<String, ShreddingSchema> = (0..=byte % 8)
                .map(|_| {
                    let name = names.get(usize::from(bytes.next().unwrap_or(0)) % names.len().max(1));
                    let name = name.copied().unwrap_or("a").to_owned();
                    (name, read(bytes, names, depth + 1))
                })
                .collect();
            ShreddingSchema::Object(fields.into_iter().collect())
        }
        160.. if depth < MAX_DEPTH => ShreddingSchema::List(Box::new(read(bytes, names, depth + 1))),
        _ => leaf(byte, bytes).map_or(ShreddingSchema::Untyped, ShreddingSchema::Leaf),
    }
}

fn leaf(byte: u8, bytes: &mut impl Iterator<Item = u8>) -> Option<LeafType> {
    use LeafType::*;
    let leaves = [
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        Float,
        Double,
        Date,
        Time,
        Timestamp,
        TimestampNtz,
        TimestampNanos,
        TimestampNtzNanos,
        Binary,
        String,
        Uuid,
    ];
    match usize::from(byte % 20) {
        index if index < leaves.len() => Some(leaves[index]),
        16..=18 => {
            let precision = 1 + bytes.next().unwrap_or(0) % 38;
            Some(Decimal { precision, scale: bytes.next().unwrap_or(0) % (precision + 1) })
        }
        _ => None,
    }
}
