#!/bin/sh
# Builds the package for a demo: `tools/install_demo.sh [EXTRA]`.
set -eu
cd "$(dirname "$0")/.."
if [ -e .venv/built ]; then
  exec make --silent build
fi
printf '\n== %s\n' 'Set up: the packages that it needs, and the kernel in Rust'
make --silent .venv/created
# Without those of development, which `make build` adds.
PIP_QUIET=1 .venv/bin/maturin develop --profile demo ${1:+--extras "$1"}
