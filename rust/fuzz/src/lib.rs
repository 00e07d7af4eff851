//! Bytes of any kind against the kernel: no input may panic, hang or take much memory, and what is read twice in
//! different ways is read alike.
//!
//! [`check`] runs one input. libFuzzer finds inputs (`make fuzz`), and the tests replay those that were kept.

pub mod canonical;
pub mod memory;
pub mod schema;
pub mod targets;

use std::sync::Mutex;
use std::time::{Duration, Instant};

pub use targets::{TARGETS, Target};

/// The longest input.
pub const MAX_INPUT: usize = 64 << 10;
/// How long one input may take, in a build without optimization too.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Run one input, and panic where it breaks a promise; the bytes that were allocated at the worst moment.
///
/// The limit of memory is for what an input makes the kernel take beyond the values that are in it.
pub fn check(target: &Target, input: &[u8]) -> usize {
    // Allocations are counted for the process, so inputs are run one at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let start = Instant::now();
    let peak = memory::peak_of(|| (target.run)(input));
    let name = target.name;
    let held = || target.held.map_or(0, |held| held(input));
    assert!(
        peak <= memory::LIMIT || peak <= memory::LIMIT + held(),
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
