//! What a string of the statistics holds once z85 is decoded: a metadata and a value, in either order.

use _native::value::{self, Metadata};

pub fn run(input: &[u8]) {
    let Ok((metadata, value)) = value::split_variant(input) else { return };
    let parsed = Metadata::parse(metadata).expect("what was split has metadata");
    value::validate(&parsed, value).expect("what was split is valid");
    let whole = [metadata, value].concat();
    assert_eq!(value::split_variant(&whole), Ok((metadata, value)), "the same, metadata first");
}
