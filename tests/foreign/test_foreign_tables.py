"""Every table of delta-kernel-rs and of deltalake: read, compared with an oracle, and audited.

`tables.tsv` has the expected results. None of them comes from this library: rows and versions are the
oracle's, and rejections and findings have a reason in the notes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from oracles import MANY_ROWS, ORACLES, comparable, deltalake, log_of, sorted_rows
from support.archives import NOTHING, TableOutcome, archives, read_outcomes, unpack

import delta_variant as dv
from delta_variant import errors
from delta_variant.errors import DeltaVariantError

OUTCOMES = read_outcomes(TableOutcome, "tables.tsv")
EQUAL = [each for each in OUTCOMES if each.outcome == "equal"]
REJECTED = [each for each in OUTCOMES if each.outcome == "rejected"]


SQL_TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us]": "timestamp_ntz",
    "timestamp[us, tz=UTC]": "timestamp",
}
# Wrong statistics, see the notes in `tables.tsv`: a reader that skips by them loses rows.
FALSE_STATISTICS = {"delta-kernel/data/parsed-stats", "delta-rs/issue_1374"}

# Rows of the change data feed from version 0, of the tables whose feed deltalake reads: it decodes percent
# signs in file names.
CHANGES = {
    "delta-kernel/data/cdf-table-non-partitioned/cdf-table-non-partitioned": 25,
    "delta-kernel/data/cdf-table-with-dv/cdf-table-with-dv": 24,
    "delta-kernel/data/cdf-table/cdf-table": 23,
    "delta-rs/cdc_ict_table": 10,
    "delta-rs/cdf-table": 23,
    "delta-rs/cdf-table-non-partitioned": 25,
    "delta-rs/simple_table_with_cdc": 3,
}


def name_of(outcome: TableOutcome) -> str:
    return outcome.archive.partition(".tar.")[0] + ("/" + outcome.table if outcome.table != NOTHING else "")


@pytest.fixture(scope="module")
def locate(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[TableOutcome], Path]:
    """Return a function that returns the folder of a table and unpacks its archive once."""
    folders: dict[str, Path] = {}

    def find(outcome: TableOutcome) -> Path:
        archive = outcome.archive
        if archive not in folders:
            folders[archive] = unpack(corpora / archive, tmp_path_factory.mktemp("archive"))
        return folders[archive] / ("" if outcome.table == NOTHING else outcome.table)

    return find


@pytest.fixture(scope="module")
def findings_of(locate: Callable[[TableOutcome], Path]) -> Callable[[TableOutcome], tuple[dv.Finding, ...]]:
    """Return a function that audits a table with its rows, once."""
    return cache(lambda outcome: dv.audit_table(locate(outcome), data=True).findings)


def test_every_archive_and_every_table_is_listed(corpora: Path, locate: Any):
    assert {each.archive for each in OUTCOMES} == archives(corpora)
    assert len({name_of(each) for each in OUTCOMES}) == len(OUTCOMES)
    for archive in archives(corpora):
        listed = [each for each in OUTCOMES if each.archive == archive]
        root = locate(TableOutcome(archive, *[NOTHING] * 9))
        logs = {log.parent for log in root.rglob("_delta_log") if log.is_dir()}
        assert logs == {locate(each) for each in listed if each.error != "TableNotFoundError: no _delta_log"}


def test_every_rejection_and_every_finding_has_a_reason():
    for each in OUTCOMES:
        assert each.outcome in ("equal", "rejected")
        assert (each.error != NOTHING) == (each.outcome == "rejected")
        assert (each.oracle in ORACLES) == (each.outcome == "equal")
        assert each.note or (each.outcome == "equal" and each.findings == NOTHING), name_of(each)


@pytest.mark.parametrize("outcome", EQUAL, ids=name_of)
def test_a_table_has_the_rows_of_the_oracle(outcome: TableOutcome, locate: Callable[[TableOutcome], Path]):
    table = locate(outcome)
    snapshot = dv.load_snapshot(table)
    ours, theirs = dv.read_table(snapshot).to_table(), ORACLES[outcome.oracle](table)
    assert (snapshot.version, theirs.num_rows) == (int(outcome.version), int(outcome.rows))
    assert ours.column_names == theirs.column_names
    if ours.num_rows >= MANY_ROWS:
        assert sorted_rows(ours, ours.schema).equals(sorted_rows(theirs, ours.schema))
    else:
        assert comparable(ours) == comparable(theirs)


@pytest.mark.parametrize("outcome", REJECTED, ids=name_of)
def test_a_table_is_rejected_with_the_expected_error(
    outcome: TableOutcome, locate: Callable[[TableOutcome], Path]
):
    name, _, fragment = outcome.error.partition(": ")
    table = locate(outcome)
    if outcome.version != NOTHING:
        assert dv.load_snapshot(table).version == int(outcome.version)
    with pytest.raises(getattr(errors, name)) as raised:
        _ = dv.read_table(table).to_table()
    assert type(raised.value).__name__ == name
    assert fragment in str(raised.value)


@pytest.mark.parametrize("outcome", [each for each in OUTCOMES if each.log == "deltalake"], ids=name_of)
def test_a_log_has_the_state_that_deltalake_reads(
    outcome: TableOutcome, locate: Callable[[TableOutcome], Path]
):
    table = locate(outcome)
    snapshot = dv.load_snapshot(table)
    protocol = snapshot.protocol
    assert log_of(table) == {
        "version": snapshot.version,
        "files": sorted(snapshot.files["path"].to_pylist()),
        "versions": (protocol.min_reader_version, protocol.min_writer_version),
        "reader features": sorted(protocol.reader_features or ()),
        "writer features": sorted(protocol.writer_features or ()),
        "id": snapshot.metadata.id,
        "partitions": list(snapshot.partition_columns),
        "configuration": dict(snapshot.properties),
        "schema": json.loads(snapshot.metadata.schema_string),
    }
    assert snapshot.version == int(outcome.version)


EARLIER = [each for each in EQUAL if each.oracle in ("expected", "deltalake") and each.version != "0"]


def rows_or_none(read: Callable[[int], pa.Table], version: int, failure: type[Exception]) -> list[str] | None:
    """Return the rows of a version, or None if it or its files were deleted."""
    try:
        return comparable(read(version))
    except failure:
        return None


TRUE_STATISTICS = [each for each in EQUAL if name_of(each) not in FALSE_STATISTICS]


def literals(column: pa.ChunkedArray) -> Iterator[tuple[Any, str]]:
    """Yield the least and the greatest value of a column, each with its SQL text, if there are any."""
    known = sorted(each for each in column.to_pylist() if each is not None)
    for value in dict.fromkeys((known[0], known[-1])) if known else ():
        yield value, f"cast('{value}' as {SQL_TYPES[str(column.type)]})"


@pytest.mark.parametrize("outcome", EARLIER, ids=name_of)
def test_earlier_versions_have_the_rows_that_deltalake_reads(
    outcome: TableOutcome, locate: Callable[[TableOutcome], Path]
):
    table = locate(outcome)

    def read(version: int) -> pa.Table:
        return dv.read_table(table, version=version).to_table()

    for version in range(int(outcome.version)):
        # deltalake raises several classes, including Exception itself.
        theirs = rows_or_none(partial(deltalake, table), version, Exception)
        assert rows_or_none(read, version, DeltaVariantError) == theirs, version


@pytest.mark.parametrize("outcome", TRUE_STATISTICS, ids=name_of)
def test_a_predicate_finds_the_same_rows_as_a_full_scan(
    outcome: TableOutcome, locate: Callable[[TableOutcome], Path]
):
    table = dv.load_snapshot(locate(outcome))
    rows = dv.read_table(table).to_table()

    def count(condition: str) -> int:
        return dv.read_table(table, columns=[], where=condition).to_table().num_rows

    for name in rows.column_names if rows.num_rows < MANY_ROWS else ():
        quoted, column = "`" + name.replace("`", "``") + "`", rows[name]
        if not pa.types.is_nested(column.type):
            assert count(f"{quoted} is null") == column.null_count
        if str(column.type) in SQL_TYPES:
            known = [each for each in column.to_pylist() if each is not None]
            for value, text in literals(column):
                assert count(f"{quoted} = {text}") == known.count(value)
                assert count(f"{quoted} > {text}") == sum(each > value for each in known)


@pytest.mark.parametrize("outcome", [each for each in EQUAL if name_of(each) in CHANGES], ids=name_of)
def test_the_changes_of_a_table_are_those_that_deltalake_reads(
    outcome: TableOutcome, locate: Callable[[TableOutcome], Path]
):
    table = locate(outcome)
    theirs = pa.table(DeltaTable(table).load_cdf(starting_version=0).read_all())
    ours = dv.read_changes(table, start=0).to_table()
    # deltalake returns the commit timestamp with another type, and the columns in another order.
    names = [name for name in ours.column_names if name != "_commit_timestamp"]
    assert sorted(theirs.column_names) == sorted(ours.column_names)
    assert comparable(ours.select(names)) == comparable(theirs.select(names))
    assert ours.num_rows == CHANGES[name_of(outcome)]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=name_of)
def test_an_audit_has_the_documented_findings(outcome: TableOutcome, findings_of: Any):
    if outcome.findings == "TableNotFoundError":
        with pytest.raises(errors.TableNotFoundError):
            findings_of(outcome)
        return
    found = {finding.rule for finding in findings_of(outcome)}
    # Missing statistics (AU21) are not a fault of the table. The test below expects the note.
    assert found - {"AU21"} == set(outcome.findings.split()) - {NOTHING}


# deltalake reads the parsed statistics of a checkpoint only if it has JSON, too.
PARSED_ONLY = {"delta-rs/delta-1.2.1-only-struct-stats"}
COUNTED = [each for each in EQUAL if each.log == "deltalake" and name_of(each) not in PARSED_ONLY]


@pytest.mark.parametrize("outcome", COUNTED, ids=name_of)
def test_an_audit_notes_each_file_whose_rows_the_log_does_not_count(
    outcome: TableOutcome, locate: Callable[[TableOutcome], Path]
):
    table = locate(outcome)
    counts = pa.table(DeltaTable(table).get_add_actions(flatten=True))
    counts = counts["num_records"] if "num_records" in counts.column_names else pa.nulls(counts.num_rows)
    noted = [each.rule for each in dv.audit_table(table).findings].count("AU21")
    assert noted >= counts.null_count


@pytest.mark.parametrize("outcome", [each for each in OUTCOMES if each.findings == NOTHING], ids=name_of)
def test_a_repair_changes_only_files_that_lack_statistics(
    outcome: TableOutcome, locate: Callable[[TableOutcome], Path], findings_of: Any
):
    findings = findings_of(outcome)
    try:
        repair = dv.repair_statistics(locate(outcome))
    except errors.UnsupportedFeatureError:
        return  # This version reads the table, but cannot commit to it.
    assert {finding.rule for finding in findings} <= {"AU21"}
    assert {file.path for file in repair.repairable} == {finding.file_path for finding in findings}
