"""The figures of `make faults`: races of many writers, and deaths at random points.

`python figures.py [--writers 16] [--appends 100] [--deaths 200] [--seed N]`
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from buckets import new_bucket, s3_server
from deaths import die
from racers import race


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--appends", type=int, default=100)
    parser.add_argument("--deaths", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    size = {"writers": given.writers, "appends": given.appends}
    with tempfile.TemporaryDirectory() as folder, s3_server() as endpoint:
        bucket = new_bucket(endpoint)
        for deletes in (False, True):
            what = f"{given.writers} processes append {given.appends} commits each at once"
            what += ", deletes between" if deletes else ""
            local = race(f"{folder}/table {deletes}", deletes=deletes, **size)
            print(f"{what}, local: {local}", flush=True)
            remote = race(bucket.table(str(deletes)), deletes=deletes, options=bucket.options, **size)
            print(f"{what}, S3: {remote}", flush=True)
        print(f"SIGKILL, seed {given.seed}: {die(Path(folder), given.deaths, given.seed)}", flush=True)


if __name__ == "__main__":
    main()
