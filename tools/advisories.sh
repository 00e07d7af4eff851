#!/bin/sh
# Checks licenses, known vulnerabilities and sources of the crates and of the Python packages.
set -eu
cd "$(dirname "$0")/.."
make .venv/created
[ -x .cache/cargo/bin/cargo-deny ] || cargo install --quiet --locked --root .cache/cargo cargo-deny@0.20.2
.cache/cargo/bin/cargo-deny --manifest-path rust/Cargo.toml --locked --workspace check
.venv/bin/pip install --quiet 'pip-audit>=2.9'
.venv/bin/pip-audit .
