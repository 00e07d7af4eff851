//! Fuzzing of the kernel: no input may panic, hang or use excessive memory, and different ways to read the same bytes
//! must agree.
//!
//! [`check`] runs one input. libFuzzer finds inputs (`tools/fuzz.sh`), and the tests replay the kept ones.

pub mod canonical;
pub mod memory;
pub mod schema;
pub mod targets;

use std::sync::Mutex;
use std::time::{Duration, Instant};

pub use targets::{TARGETS, Target};

/// Maximum length of an input, in bytes.
pub const MAX_INPUT: usize = 64 << 10;
/// Maximum duration of one input, even in a build without optimization.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Run one input and return its peak allocation in bytes. Panic if the input violates an invariant.
///
/// The memory limit excludes the decoded values of the input itself.
pub fn check(target: &Target, input: &[u8]) -> usize {
    // Allocations are counted per process, so inputs run one at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let start = Instant::now();
    let peak = memory::peak_of(|| (target.run)(input));
    let name = target.name;
    let decoded_size = || target.decoded_size.map_or(0, |decoded_size| decoded_size(input));
    assert!(
        peak <= memory::LIMIT || peak <= memory::LIMIT + decoded_size(),
        "{name}: {peak} bytes allocated for an input of {} bytes",
        input.len()
    );
    assert!(
        start.elapsed() <= TIME_LIMIT,
        "{name}: {:?} for an input of {} bytes",
        start.elapsed(),
        input.len()
    );
    peak
}
