"""Rules of row ids over all files of a table (PROTOCOL.md, "Row Tracking")."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import MalformedLogError
from ...log.pending_commit import NO_ROW_IDS, read_high_water_mark
from ...protocol.actions import ROW_TRACKING_DOMAIN
from ...protocol.statistics import counts_of, texts_at
from .findings import Rule, Violation
from .subjects import TableSubject

__all__ = ["ROW_ID_RULES"]


def _ranges(subject: TableSubject) -> list[tuple[int, int, str]]:
    """Return first and last row id and path of each file that has row ids and numRecords, by its first id."""
    snapshot = subject.survey.snapshot
    if snapshot is None:
        return []
    files = snapshot.files
    (numbers,) = texts_at(files["stats"], [(("numRecords",), "number")])
    rows = zip(
        files["base_row_id"].to_pylist(),
        counts_of(numbers).to_pylist(),
        map(str, files["path"].to_pylist()),
        strict=True,
    )
    return sorted(
        (first, first + count - 1, path) for first, count, path in rows if first is not None and count
    )


def _overlaps(subject: TableSubject) -> Iterator[Violation]:
    last, last_path = NO_ROW_IDS, ""
    for first, end, path in _ranges(subject):
        if last_path and first <= last:
            yield Violation(
                f"the file has the row ids {first:,} to {end:,}, but {last_path} has those up to {last:,}",
                file_path=path,
            )
        if end > last:
            last, last_path = end, path


def _above_the_mark(subject: TableSubject) -> Iterator[Violation]:
    ranges = _ranges(subject)
    if not ranges or subject.survey.snapshot is None:
        return
    domain = subject.survey.domains.get(ROW_TRACKING_DOMAIN)
    try:
        mark = read_high_water_mark([domain] if domain else [], NO_ROW_IDS)
    except MalformedLogError as error:
        yield Violation(error.message)
        return
    greatest, path = max((end, path) for _, end, path in ranges)
    if greatest > mark:
        stated = f"rowIdHighWaterMark is {mark:,}" if domain else "the log has no rowIdHighWaterMark"
        yield Violation(f"{stated}, but the file has row ids up to {greatest:,}", file_path=path)


ROW_ID_RULES: tuple[Rule[TableSubject], ...] = (
    Rule(
        "F13", "error", _overlaps, "two rows have one id: commit one of the files again with a new baseRowId"
    ),
    Rule("F14", "error", _above_the_mark, "the next commit assigns ids that rows have: commit a higher mark"),
)
