//! The corpora: data of other projects, listed in `tests/support/corpora.toml`.

use std::path::PathBuf;

/// Return a folder of the corpora. Panic if it is missing.
pub fn corpus(folder: &str) -> PathBuf {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpora");
    let corpora = std::env::var_os("DELTA_VARIANT_CORPORA").map_or_else(default, PathBuf::from);
    let corpus = corpora.join(folder);
    assert!(
        corpus.is_dir(),
        "expected a corpus in {}; run `make corpora DIR=…` and set DELTA_VARIANT_CORPORA to that folder",
        corpus.display()
    );
    corpus
}
