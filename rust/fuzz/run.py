"""Run each fuzz target for a fixed time and print its results. Exit with status 1 if there are findings.

python rust/fuzz/run.py [--seconds 240] [target …]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from seeds import MAX_INPUT, PROJECT, write_seeds

CRATE = PROJECT / "rust" / "fuzz"
WORK = PROJECT / ".cache" / "fuzz"
TARGETS = ("variant", "functions", "json", "parquet", "split_variant", "deletion_vector", "lines")
# The flags that `cargo fuzz` passes, without the sanitizers, which stable Rust does not have.
COVERAGE = " ".join(
    ["-Cpasses=sancov-module"]
    + [
        f"-Cllvm-args=-sanitizer-coverage-{setting}"
        for setting in ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
    ]
)
# Start with short inputs, which run faster.
LIMITS = [f"-max_len={MAX_INPUT}", "-len_control=100", "-timeout=10", "-rss_limit_mb=4096"]


@dataclass(frozen=True)
class Outcome:
    """The result of running one target."""

    target: str
    executions: int
    edges: int
    peak_bytes: int
    findings: tuple[Path, ...]
    log: Path


def build() -> Path:
    """Build the fuzzer and return its path."""
    host = re.search(r"host: (\S+)", _output(["rustc", "-vV"]))
    if host is None:
        raise SystemExit("cannot determine the host from rustc -vV")
    # With an explicit target, cargo does not apply the flags to build scripts and macros.
    command = ["cargo", "build", "--locked", "--package", "delta-variant-fuzz", "--features", "libfuzzer"]
    command += ["--profile", "fuzz", "--target", host[1]]
    subprocess.run(command, cwd=CRATE.parent, env={**os.environ, "RUSTFLAGS": COVERAGE}, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CRATE.parent / "target")
    return target / host[1] / "fuzz" / "fuzz"


def run(fuzzer: Path, target: str, seconds: int) -> Outcome:
    """Fuzz one target, starting from its seeds, its kept inputs and the inputs that earlier runs reached."""
    found, kept, reached = WORK / "findings" / target, CRATE / "corpus" / target, WORK / "reached" / target
    shutil.rmtree(found, ignore_errors=True)
    for folder in (found, kept, reached):
        folder.mkdir(parents=True, exist_ok=True)
    log = WORK / f"{target}.log"
    command = [str(fuzzer), *LIMITS, f"-max_total_time={seconds}", f"-artifact_prefix={found}/"]
    command += ["-print_final_stats=1", str(reached), str(WORK / "seeds" / target), str(kept)]
    environment = {**os.environ, "FUZZ_TARGET": target, "RAYON_NUM_THREADS": "1"}
    with log.open("wb") as out:
        subprocess.run(command, env=environment, stdout=out, stderr=out, check=False)
    text = log.read_text(encoding="utf-8", errors="replace")
    return Outcome(
        target,
        executions=_greatest(r"number_of_executed_units: (\d+)", text),
        edges=_greatest(r" cov: (\d+) ", text),
        peak_bytes=_greatest(r"peak memory: (\d+) bytes", text),
        findings=tuple(keep(finding, kept) for finding in sorted(found.iterdir())),
        log=log,
    )


def keep(finding: Path, folder: Path) -> Path:
    """Copy a failing input to the folder that the tests replay, and return its path there."""
    kept = folder / finding.name
    shutil.copyfile(finding, kept)
    return kept


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _greatest(pattern: str, text: str) -> int:
    return max((int(number) for number in re.findall(pattern, text)), default=0)


def main() -> int:
    """Run the targets and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=240, help="how long to run each target (default: 240)")
    parser.add_argument(
        "targets", nargs="*", metavar="target", help=f"one of {', '.join(TARGETS)}; all by default"
    )
    arguments = parser.parse_args()
    fuzzer = build()
    write_seeds(WORK / "seeds")
    failed, executions = False, 0
    for target in arguments.targets or TARGETS:
        one = run(fuzzer, target, arguments.seconds)
        # A run without executions means that the fuzzer did not start.
        failed |= bool(one.findings) or one.executions == 0
        executions += one.executions
        print(
            f"{target:16} {one.executions:>11,} executions {one.edges:>7,} edges "
            f"{one.peak_bytes / 2**20:>6.1f} MB at most, {len(one.findings)} findings ({one.log})",
            *one.findings,
            sep="\n  ",
            flush=True,
        )
    print(f"{'all targets':16} {executions:>11,} executions", flush=True)
    if not arguments.targets:
        # Text that Python parses is fuzzed by a loop of the test suite.
        command = [sys.executable, str(PROJECT / "tests" / "hostile_text.py"), str(arguments.seconds)]
        failed |= subprocess.run(command, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
