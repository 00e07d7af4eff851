#!/bin/sh
# Runs all engines on all cases, writes .cache/conformance.html, and updates the history and the matrix of the
# documentation. An engine that does not start, such as Spark without Java, is reported and left out.
set -eu
cd "$(dirname "$0")/.."
tools/engines.sh
.venv/bin/pip install --quiet --editable './conformance[engines]'
rm -rf .cache/systematic
.venv/bin/python protocol_fixtures/build/systematic.py .cache/systematic

# Without these JARs, Spark fetches them at each start.
delta=$PWD/.cache/jars/delta-spark_4.2_2.13-4.4.0.jar storage=$PWD/.cache/jars/delta-storage-4.4.0.jar
[ ! -f "$delta" ] ||
  export PYSPARK_SUBMIT_ARGS="--jars $delta,$storage --driver-class-path $delta:$storage pyspark-shell"
.venv/bin/delta-variant conformance --cases protocol_fixtures --cases .cache/systematic \
  --cases "${DELTA_VARIANT_CORPORA:-../shared/corpora}/parquet-testing" --packages .cache/engines \
  --history docs/about/conformance-history.json --html .cache/conformance.html --json > .cache/conformance.json
PYTHONPATH=tests .venv/bin/python tests/support/conformance_matrix.py
