#!/bin/sh
# Interleavings of concurrent operations, for 30 to 60 minutes on two cores; then concurrent writers on a disk and on S3,
# and killed processes, with figures; then killed drivers and executors of Spark, which need Java. A seed that fails is
# repeated by `tests/faults/interleavings.py --seed N`.
set -eu
cd "$(dirname "$0")/.."
make build
.venv/bin/python tests/faults/interleavings.py --count "${INTERLEAVINGS:-20000}" --workers 2
.venv/bin/python tests/faults/interleavings.py --rows --count "${INTERLEAVINGS:-20000}" --workers 2
.venv/bin/python tests/faults/measure.py
RANDOM_CRASHES=20 .venv/bin/pytest -m nightly tests/spark/test_driver_crashes.py
CLUSTER_RUNS=20 .venv/bin/pytest -m nightly tests/spark/test_killed_executors.py tests/spark/test_speculation.py
