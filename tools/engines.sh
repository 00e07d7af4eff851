#!/bin/sh
# Installs the engines of the conformance kit that have packages of their own, 1.2 GB, with fixed versions: their packages
# are large or exclude others. They use the pyarrow of .venv.
set -eu
cd "$(dirname "$0")/.."
make build jars .cache/engines/spark-newest

install() {
  folder=.cache/engines/$1
  shift
  [ -d "$folder" ] || { .venv/bin/pip install --quiet --target "$folder.part" "$@" && mv "$folder.part" "$folder"; }
}
install chdb --no-deps chdb==4.4.0 chdb-core==26.9.0
install datafusion --no-deps datafusion==55.0.0 cloudpickle==3.1.2
install delta-kernel --no-deps delta-kernel-rust-sharing-wrapper==0.3.3
install pyiceberg pyiceberg==0.12.0
# Its extension has no package for a later version of DuckDB.
install duckdb-delta --no-deps duckdb==1.4.4 duckdb-ext-delta==1.4.4.20260205
