//! Run one fuzz target under libFuzzer; the environment variable `FUZZ_TARGET` names it.

#![no_main]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use delta_variant_fuzz::{TARGETS, Target, check, targets};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

static TARGET: OnceLock<&Target> = OnceLock::new();
static GREATEST: AtomicUsize = AtomicUsize::new(0);

fuzz_target!(init: start(), |input: &[u8]| {
    let peak = check(target(), input);
    if GREATEST.fetch_max(peak, Ordering::Relaxed) < peak {
        eprintln!("peak memory: {peak} bytes");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match target().name {
        "parquet" => targets::parquet::mutate(data, size, max_size, seed, fuzzer_mutate),
        _ => fuzzer_mutate(data, size, max_size),
    }
});

/// Replace libFuzzer's panic hook, which aborts on every panic, because the kernel catches panics of the Parquet
/// decoder. Only uncaught panics end the process.
fn start() {
    std::panic::set_hook(Box::new(|panic| {
        if std::env::var_os("FUZZ_VERBOSE").is_some() || !targets::parquet::is_decoder(panic) {
            eprintln!("{panic}");
        }
    }));
}

fn target() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let names = || TARGETS.map(|target| target.name).join(", ");
        match TARGETS.iter().find(|target| target.name == name) {
            Some(target) => target,
            None => panic!("invalid FUZZ_TARGET {name:?}: expected one of {}", names()),
        }
    })
}
