//! The decoded bytes of a statistics string: metadata and value, in either order.

use _native::value::{self, Metadata};

pub fn run(input: &[u8]) {
    let Ok((metadata, value)) = value::split_variant(input) else { return };
    let parsed = Metadata::parse(metadata).expect("a split Variant has valid metadata");
    value::validate(&parsed, value).expect("a split Variant is valid");
    let whole = [metadata, value].concat();
    assert_eq!(value::split_variant(&whole), Ok((metadata, value)), "the same Variant, metadata first");
}
