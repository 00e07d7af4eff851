//! The older Spark draft of shredding: `object`, `array`, `typed_value` and `untyped_value` (requirements, section 3).
//!
//! There is no `metadata`: each `untyped_value` is a whole Variant, its own metadata in front of its value. Files in
//! this layout are read to be migrated, and written only on demand.

mod assemble;
pub mod layout;
pub mod read;
pub mod write;

pub use layout::restored;
pub use read::unshred;
pub use write::shred;
