"""The figures of `tools/faults.sh`: many concurrent writers, and crashes at random points.

`python measure.py [--writers 16] [--appends 100] [--crashes 200] [--seed N]`
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from buckets import new_bucket, s3_server
from concurrent_writers import run_writers
from crash_recovery import run_crashes
from row_writers import run_row_writers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--appends", type=int, default=100)
    parser.add_argument("--crashes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    size = {"writers": given.writers, "appends": given.appends}
    with tempfile.TemporaryDirectory() as folder, s3_server() as endpoint:
        bucket = new_bucket(endpoint)
        for deletes in (False, True):
            what = f"{given.writers} concurrent processes append {given.appends} commits each"
            what += " and delete rows" if deletes else ""
            local = run_writers(f"{folder}/table {deletes}", deletes=deletes, **size)
            print(f"{what}, local: {local}", flush=True)
            remote = run_writers(bucket.table(str(deletes)), deletes=deletes, options=bucket.options, **size)
            print(f"{what}, S3: {remote}", flush=True)
        changes = {"writers": given.writers, "changes": given.appends}
        for vectors in (True, False):
            what = "deletion vectors" if vectors else "copy-on-write"
            counts = run_row_writers(Path(folder, what), vectors=vectors, **changes)
            print(f"{given.writers} processes change {given.appends} rows each of one file, {what}: {counts}")
        counts = run_row_writers(Path(folder, "killed"), kills=given.crashes, seed=given.seed, **changes)
        print(f"the same with SIGKILL, seed {given.seed}: {counts}", flush=True)
        crashes = run_crashes(Path(folder), given.crashes, given.seed)
        print(f"SIGKILL, seed {given.seed}: {crashes}", flush=True)


if __name__ == "__main__":
    main()
