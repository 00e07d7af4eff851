#!/bin/sh
# Runs the example pipeline on Spark, on the changes between two releases of Bioregistry, which is MIT, its data CC0.
# `make demo-spark` calls it. It needs Java 17 or 21.
set -eu
cd "$(dirname "$0")/.."
tools/install_demo.sh spark
data=.cache/pipeline

for version in 0.12.0 0.15.6; do
  [ -d "$data/$version" ] || .venv/bin/pip install --quiet --no-deps --ignore-requires-python \
    --target "$data/$version" "bioregistry==$version"
done
[ -d "$data/landing" ] || .venv/bin/python examples/registry_changes.py \
  "$data/0.12.0/bioregistry/data/bioregistry.json" "$data/0.15.6/bioregistry/data/bioregistry.json" "$data/landing"
rm -rf "$data/spark"
exec .venv/bin/python examples/spark_pipeline.py "$data/landing" "$data/spark" check stream correct stream maintain monitor \
  --files-per-batch 1 --master 'local[2]'
