//! The legacy layout, an older Spark draft of shredding: `object`, `array`, `typed_value` and `untyped_value`.
//!
//! There is no `metadata`: each `untyped_value` is a whole Variant, its metadata followed by its value. Files in
//! this layout are read for migration, and written only on request.

mod assemble;
pub mod layout;
pub mod read;
pub mod write;

pub use layout::restored;
pub use read::unshred;
pub use write::shred;
