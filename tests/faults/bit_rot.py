"""Damage the files of tables and read them: count what is an error, what is silent and what ends the process.

    python tests/faults/bit_rot.py [--changes 20000] [--seed 1] [--kind bits] [subject …]

`bits` flips one bit of the file, as a disk or a network does. `bytes` writes random bytes, integers at their
limits, zeros, or other parts of the file, cuts it, or makes several of these changes, as an attacker does.
`types` changes the type of a column in the footer. The files are read in a child process, which goes on after
the change that ended the one before. Each read is compared with a read of the file before it was damaged.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import re
import resource
import struct
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from log.test_deletion_vectors import bitmap_of
from support.tables import commit_path

import delta_variant as dv
from delta_variant.errors import DeltaVariantError
from delta_variant.input.files import open_parquet
from delta_variant.log.checkpoints import writing
from delta_variant.log.load import load_with_tombstones
from delta_variant.protocol import z85
from delta_variant.storage.inputs import InputFile
from delta_variant.storage.store import open_store

CODECS = ("zstd", "snappy", "none", "gzip", "lz4_raw")
DEADLINE_SECONDS = 60
MEMORY_BYTES = 6 << 30
ROWS = 500
SHOWN = 5
"""The changes with a bad outcome that are printed for each subject."""

LIMITS = (0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))


@dataclass(frozen=True)
class Subject:
    """A file of a table, and the operation that reads it."""

    make: Callable[[Path], Path]
    read: Callable[[Path], Any]


@dataclass
class Outcomes:
    """The outcomes of the changes of one subject: how many of each there are, by the part of the file."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)

    def add(self, number: int, part: str, outcome: str) -> None:
        """Count an outcome, and keep its text if it is neither right nor an error of the library."""
        kind, _, text = outcome.partition(": ")
        self.counts[part, kind] += 1
        if kind not in ("same", "error"):
            self.bad.append(f"change {number} in {part}: {kind} {text}")

    def total(self, kind: str | None = None) -> int:
        """Return the number of outcomes of a kind, None for all."""
        return sum(count for (_, each), count in self.counts.items() if kind in (None, each))


def _rows() -> list[dict[str, Any]]:
    random = Random(1)
    return [
        {
            "id": number,
            "s": f"name {random.randrange(90)}",
            "event": {"n": number, "x": random.random(), "u": f"u{random.randrange(300)}"},
        }
        for number in range(ROWS)
    ]


def _data_file(codec: str) -> Subject:
    def make(folder: Path) -> Path:
        configuration = {"delta.parquet.compression.codec": codec}
        dv.write_table(folder, _rows(), variant_columns=["event"], configuration=configuration)
        (file,) = folder.glob("*.parquet")
        return file

    return Subject(make, _table)


def _table(folder: Path) -> Any:
    columns = {"id": "id", "s": "s", "e": "to_json(event)"}
    where = "id >= 400 and event:n::bigint < 470"
    return dv.read_table(folder, columns=columns).to_table(), dv.read_table(folder, where=where).count()


def _with_checkpoint(pattern: str, *, sidecars: bool = False, **configuration: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        properties = {"delta.checkpointInterval": "12", **configuration}
        dv.write_table(folder, [{"id": -1}], configuration=properties)
        with patch.object(writing, "SIDECAR_FILES", 4 if sidecars else writing.SIDECAR_FILES):
            for number in range(11):
                dv.write_table(folder, [{"id": number}], mode="append")
                if number == 6:
                    dv.delete(folder, "id = 3")
        for commit in folder.glob("_delta_log/*.json"):
            commit.unlink()
        files = sorted(folder.glob(f"_delta_log/{pattern}"))
        return files[0]

    return make


def _in_parts(folder: Path) -> Path:
    file = _with_checkpoint("*.checkpoint.parquet")(folder)
    rows = pq.read_table(file)
    version, half = file.name.split(".")[0], rows.num_rows // 2
    for number, part in enumerate([rows.slice(0, half), rows.slice(half)], 1):
        pq.write_table(part, file.with_name(f"{version}.checkpoint.{number:010}.0000000002.parquet"))
    file.unlink()
    return file.with_name(f"{version}.checkpoint.{2:010}.0000000002.parquet")


def _snapshot(folder: Path) -> Any:
    snapshot, tombstones = load_with_tombstones(open_store(folder, None), None)
    return (
        snapshot.version,
        snapshot.protocol,
        snapshot.metadata,
        snapshot.txns,
        snapshot.domain_metadata,
        snapshot.files.sort_by("path"),
        tombstones.sort_by("path"),
    )


def _deletion_vector(folder: Path) -> Path:
    properties = {"delta.enableDeletionVectors": "true"}
    dv.write_table(folder, _rows(), variant_columns=["event"], configuration=properties)
    data = bitmap_of({*range(0, ROWS, 7), *range(200, 300)}, runs=False)
    file = folder / "deletion_vector_00000000-0000-0000-0000-000000000001.bin"
    # PROTOCOL.md, "Deletion Vector File Storage Format".
    file.write_bytes(b"\1" + len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big"))
    log = commit_path(folder, 0)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    cardinality = len({*range(0, ROWS, 7), *range(200, 300)})
    vector = {"storageType": "u", "pathOrInlineDv": z85.encode(UUID(int=1).bytes), "offset": 1}
    for action in actions:
        if "add" in action:
            action["add"]["deletionVector"] = {
                **vector,
                "sizeInBytes": len(data),
                "cardinality": cardinality,
            }
    log.write_text("\n".join(map(json.dumps, actions)))
    return file


def _input_file(folder: Path) -> Path:
    folder.mkdir()
    file = folder / "input.parquet"
    pq.write_table(
        pa.Table.from_pylist([{**row, "event": str(row["event"])} for row in _rows()]),
        file,
        write_page_checksum=True,
    )
    return file


def _input_rows(folder: Path) -> Any:
    path = str(folder / "input.parquet")
    return open_parquet([InputFile(path, "input.parquet", open_store(folder), "input.parquet")]).read_all()


def _with_pages(folder: Path) -> Path:
    rows = pa.table({"id": range(40_000), "s": [f"{number:08}" for number in range(40_000)]})
    dv.write_table(folder, rows)
    (file,) = folder.glob("*.parquet")
    return file


def _selected(folder: Path) -> Any:
    return dv.read_table(folder, where="id >= 12345 and id < 12400 or s = '00031000'").to_table()


def _checksum(folder: Path) -> Path:
    properties = {"delta.enableChangeDataFeed": "true"}
    dv.write_table(folder, [{"id": 1, "s": "x"}], configuration=properties)
    for number in range(3):
        dv.write_table(folder, [{"id": number, "s": f"s{number}"}], mode="append")
    return folder / "_delta_log" / f"{1:020}.crc"


def _changes(folder: Path) -> Any:
    changes = dv.read_changes(folder, start=1, end=2)
    return dv.load_snapshot(folder).metadata, changes.to_table().sort_by("id")


def _hint(folder: Path) -> Path:
    dv.write_table(folder, [{"id": 0}], configuration={"delta.checkpointInterval": "3"})
    for number in range(8):
        dv.write_table(folder, [{"id": number}], mode="append")
    return folder / "_delta_log" / "_last_checkpoint"


V2 = {"delta.checkpointPolicy": "v2"}
PARSED = {"delta.checkpoint.writeStatsAsStruct": "true"}

SUBJECTS: Mapping[str, Subject] = {
    **{f"data file, {codec}": _data_file(codec.removesuffix("_raw")) for codec in CODECS},
    "checkpoint": Subject(_with_checkpoint("*.checkpoint.parquet", **PARSED), _snapshot),
    "checkpoint in parts": Subject(_in_parts, _snapshot),
    "checkpoint v2": Subject(_with_checkpoint("*.checkpoint.*.parquet", sidecars=True, **V2), _snapshot),
    "sidecar": Subject(_with_checkpoint("_sidecars/*.parquet", sidecars=True, **V2), _snapshot),
    "page index": Subject(_with_pages, _selected),
    "input file": Subject(_input_file, _input_rows),
    "deletion vector": Subject(_deletion_vector, _table),
    "version checksum": Subject(_checksum, _changes),
    "_last_checkpoint": Subject(_hint, _snapshot),
}


def flip_bit(content: bytes, random: Random) -> tuple[int, bytes]:
    """Return the content with one bit flipped, and where."""
    at = random.randrange(len(content))
    return at, content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]


def change_bytes(content: bytes, random: Random) -> tuple[int, bytes]:
    """Return the content with some bytes changed, and where the first of them is."""
    first = len(content)
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        # Half of the changes are in the last part of the file, which for Parquet has the footer.
        start = random.choice((0, max(0, len(content) - 4000)))
        at = random.randrange(start, max(start + 1, len(content)))
        length = random.choice((1, 1, 2, 4, 8, 64))
        other = random.randrange(len(content)) if content else 0
        limit = struct.pack("<q", random.choice(LIMITS))
        new = random.choice(
            (
                random.randbytes(length),
                limit[:length],
                bytes(length),
                b"\xff" * length,
                content[other : other + length],
                b"",
            )
        )
        if random.random() < 0.05:
            content = content[:at]
        else:
            kept = at if random.random() < 0.1 else at + len(new or b" ")
            content = content[:at] + new + content[kept:]
        first = min(first, at)
    return first, content


def change_type(content: bytes, random: Random) -> tuple[int, bytes]:
    """Return the content with another physical type of a column chunk, and where."""
    # Field 1 of ColumnMetaData is an integer, and field 2 a list.
    at = random.choice([match.start(1) for match in re.finditer(rb"\x15([\x00-\x0e])\x19", content)])
    return at, content[:at] + bytes([2 * random.randrange(8)]) + content[at + 1 :]


KINDS: Mapping[str, Callable[[bytes, Random], tuple[int, bytes]]] = {
    "bits": flip_bit,
    "bytes": change_bytes,
    "types": change_type,
}


def run(name: str, changes: int, seed: int = 1, kind: str = "bits") -> Outcomes:
    """Return the outcomes of a number of changes of a subject."""
    outcomes, done = Outcomes(), 0
    with tempfile.TemporaryDirectory() as folder:
        while done < changes:
            table = Path(folder, str(done))
            command = [sys.executable, __file__, "--child", str(table), "--start", str(done)]
            command += ["--changes", str(changes), "--seed", str(seed), "--kind", kind, name]
            child = subprocess.run(command, capture_output=True, text=True)
            for line in child.stdout.splitlines():
                _, part, outcome = line.split("\t", 2)
                outcomes.add(done, part, outcome)
                done += 1
            if done < changes:
                if not child.stdout and "started" not in child.stderr:
                    raise RuntimeError(f"the child process did not start: {child.stderr}")
                outcomes.add(done, "any part", f"ended: exit {child.returncode}, {child.stderr[-400:]!r}")
                done += 1
    return outcomes


def _damage(name: str, table: Path, arguments: argparse.Namespace) -> None:
    """Make a table, damage its file again and again, and print what each read does."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    subject = SUBJECTS[name]
    file = subject.make(table)
    content, right = file.read_bytes(), subject.read(table)
    parts = _parts(content)
    print("started", file=sys.stderr, flush=True)
    for number in range(arguments.start, arguments.changes):
        at, changed = KINDS[arguments.kind](content, Random(f"{arguments.seed} {number}"))
        file.write_bytes(changed)
        # A read that hangs ends the process with its stack.
        faulthandler.dump_traceback_later(DEADLINE_SECONDS, exit=True)
        outcome = _outcome(lambda: subject.read(table), right)
        faulthandler.cancel_dump_traceback_later()
        part = next(name for end, name in parts if at < end)
        print(number, part, outcome, sep="\t", flush=True)


def _outcome(read: Callable[[], Any], right: Any) -> str:
    try:
        return "same" if read() == right else "silent"
    except DeltaVariantError:
        return "error"
    except Exception as error:
        where = traceback.format_tb(error.__traceback__)[-1]
        return f"foreign: {type(error).__name__} {ascii(str(error))[:200]} at {where!r}"


def _parts(content: bytes) -> list[tuple[float, str]]:
    """Return the ends of the parts of a file, with their names."""
    if content[-4:] != b"PAR1":
        return [(float("inf"), "the file")]
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    metadata = pq.read_metadata(pa.BufferReader(content))
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(metadata.num_columns)]
    starts = [(chunk.dictionary_page_offset or chunk.data_page_offset, chunk) for chunk in chunks]
    pages = max(start + chunk.total_compressed_size for start, chunk in starts)
    return [(pages, "pages"), (footer, "page index"), (float("inf"), "footer")]


def main() -> int:
    """Print a table of the outcomes; exit with status 1 if a process ended or raised a foreign error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=20_000, help="the changes of each subject")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, default="bits")
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "subjects", nargs="*", metavar="subject", help=f"of {', '.join(SUBJECTS)}; default: all"
    )
    arguments = parser.parse_args()
    if arguments.child is not None:
        _damage(arguments.subjects[0], arguments.child, arguments)
        return 0
    print("| file | part | changes | silent | errors | same rows | other |\n|---|---|--:|--:|--:|--:|--:|")
    failed = False
    for name in arguments.subjects or SUBJECTS:
        outcomes = run(name, arguments.changes, arguments.seed, arguments.kind)
        for part in sorted({part for part, _ in outcomes.counts}):
            counts = {kind: count for (each, kind), count in outcomes.counts.items() if each == part}
            total, others = sum(counts.values()), counts.get("foreign", 0) + counts.get("ended", 0)
            shown = (total, *(counts.get(kind, 0) for kind in ("silent", "error", "same")), others)
            print(f"| {name} | {part} | {' | '.join(f'{count:,}' for count in shown)} |", flush=True)
        failed |= outcomes.total("foreign") + outcomes.total("ended") > 0
        print(*outcomes.bad[:SHOWN], sep="\n", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
