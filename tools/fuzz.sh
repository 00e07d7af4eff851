#!/bin/sh
# Fuzzes the kernel: `tools/fuzz.sh 240` runs each target for 240 seconds, 28 minutes in all.
set -eu
cd "$(dirname "$0")/.."
make build
export PYO3_PYTHON="$PWD/.venv/bin/python" PYO3_BUILD_EXTENSION_MODULE=1
export DELTA_VARIANT_CORPORA="${DELTA_VARIANT_CORPORA:-$PWD/../shared/corpora}"
exec .venv/bin/python rust/fuzz/run.py --seconds "${1:-240}"
