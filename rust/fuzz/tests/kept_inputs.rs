//! Replay of the inputs that once failed, each with its target.

use std::fs;
use std::path::Path;

use delta_variant_fuzz::{MAX_INPUT, TARGETS, check};

#[test]
fn kept_inputs_pass_every_check() {
    for target in &TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let mut inputs: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "expected inputs in {}", folder.display());
        for input in inputs {
            let bytes = fs::read(&input).unwrap();
            assert!(bytes.len() <= MAX_INPUT, "{} is too long", input.display());
            println!("{}", input.display());
            check(target, &bytes);
        }
    }
}

#[test]
fn an_input_that_exceeds_the_memory_limit_is_reported() {
    let greedy = delta_variant_fuzz::Target {
        name: "greedy",
        run: |_| drop(std::hint::black_box(vec![1_u8; 65 << 20])),
        decoded_size: None,
    };
    let caught = std::panic::catch_unwind(|| check(&greedy, b"")).unwrap_err();
    let message = caught.downcast::<String>().unwrap();
    assert!(message.ends_with("bytes allocated for an input of 0 bytes"), "{message}");
}
