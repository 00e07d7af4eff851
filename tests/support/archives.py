"""Archives of tables by other writers, and the recorded outcome of reading each."""

from __future__ import annotations

import csv
import io
import tarfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

OUTCOMES = Path(__file__).resolve().parents[1] / "foreign"
FOLDERS = ("delta-kernel/data", "delta-kernel/golden", "delta-rs")
CODECS = {".gz": "gzip", ".zst": "zstd"}
NOTHING = "-"

SPARK_TABLES = (
    "a_unshredded",
    "b0_shredded_defaults",
    "b1_limit_only",
    "b2_stats_preview",
    "c_both_preview",
    "c_stats_ga",
    "c_stats_ga_limit2",
    "d_cdf",
    "d_ckpt_struct_nojson",
    "d_cm_id",
    "d_cm_name",
    "d_dv",
    "d_partitioned",
    "d_v2ckpt",
    "f_prop_toggle",
    "g_missing",
    "g_names",
    "g_scalar",
    "g_types",
)
"""The tables that Spark wrote, each an archive of the corpora."""

GOLDEN_TABLES = (
    "spark-variant-checkpoint",
    "variant-stats-no-checkpoint",
    "variant-stats-with-struct-no-checkpoint",
)
"""The tables of Delta's golden files with Variants."""

Row = TypeVar("Row")


@dataclass(frozen=True)
class TableOutcome:
    """The outcome of reading one table of an archive, a row of `tables.tsv`."""

    archive: str
    table: str
    version: str
    rows: str
    oracle: str
    log: str
    outcome: str
    error: str
    findings: str
    note: str


@dataclass(frozen=True)
class FileOutcome:
    """The outcome of reading a Parquet file, a row of `variant_files.tsv`."""

    file: str
    rows: str
    oracle: str
    outcome: str
    findings: str
    note: str


@dataclass(frozen=True)
class CaseOutcome:
    """The outcome of a case of a suite of another project."""

    file: str
    case: str
    outcome: str
    reason: str


def read_outcomes(kind: type[Row], name: str) -> list[Row]:
    """Return the rows of a recorded table. Lines that begin with `#` are comments."""
    lines = (OUTCOMES / name).read_text(encoding="utf-8").splitlines()
    rows = list(csv.reader((line for line in lines if not line.startswith("#")), delimiter="\t"))
    header, *outcomes = rows
    assert header == [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return [kind(*row) for row in outcomes]


def archives(corpora: Path) -> set[str]:
    """Return the names of all archives."""
    found = (path for folder in FOLDERS for path in (corpora / folder).iterdir() if ".tar." in path.name)
    return {str(path.relative_to(corpora)) for path in found}


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive and return the folder."""
    compressed = pa.BufferReader(archive.read_bytes())
    data = pa.CompressedInputStream(compressed, CODECS[archive.suffix]).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        files.extractall(folder, filter="data")
    return folder


def unpack_spark_table(corpora: Path, name: str, folder: Path) -> Path:
    """Unpack a table that Spark wrote, `delta-spark/NAME.tar.gz`, and return the folder of the table."""
    return unpack(corpora / "delta-spark" / f"{name}.tar.gz", folder) / name
