"""Row groups that are not read because a dictionary lacks the values of a condition: no row is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_variant as dv
from delta_variant.operations.convert import convert_in_place

ROWS = 4_000
PRESENT = "bdf"
ABSENT = "ace"
SCHEMA = dv.ShreddingSchema.of({"word": pa.string(), "number": pa.int64(), "inner": {"word": pa.string()}})
FOOTER_AND_DICTIONARY = 68 << 10
"""More than the bytes that are read of a file without its rows, and less than the rows have."""


def make(
    seed: int, word: Callable[[random.Random, int], Any] = lambda random_, row: random_.choice(PRESENT)
) -> pa.Table:
    """Return words and numbers in columns and a Variant, and bytes that make them worth excluding."""
    random_ = random.Random(seed)
    words = [word(random_, row) for row in range(ROWS)]
    numbers = [random_.choice([None, 2, 4, 6]) for _ in range(ROWS)]
    documents = (
        {"word": word, "number": number, "inner": {"word": word}, "rare": row}
        for row, (word, number) in enumerate(zip(words, numbers, strict=True))
    )
    return pa.table(
        {
            "id": range(ROWS),
            "word": [word if isinstance(word, str) else None for word in words],
            "number": pa.array(numbers, pa.int64()),
            "payload": [random_.randbytes(48).hex() for _ in range(ROWS)],
            "event": [json.dumps(document) for document in documents],
        }
    )


def write(path: Path, rows: pa.Table, **options: Any) -> Path:
    shredding: Any = {"variant_columns": ["event"], "shredding": {"event": SCHEMA}}
    dv.write_table(path, rows, **shredding, **options)
    return path


def by_pyarrow(path: Path, rows: pa.Table, **options: Any) -> Path:
    """Write a table whose file is of pyarrow, with dictionaries of all types."""
    own = pq.read_table(next(write(path / "own", rows).glob("*.parquet")))
    files = path / "files"
    files.mkdir()
    pq.write_table(own, files / "rows.parquet", **options)
    convert_in_place(files, (), collect_stats=True)
    return files


def by_engine(path: Path, rows: pa.Table, write: Callable[[pa.Table, Path], object]) -> Path:
    path.mkdir()
    write(rows.drop(["event"]), path / "rows.parquet")
    convert_in_place(path, (), collect_stats=True)
    return path


WRITERS: dict[str, Callable[[Path, pa.Table], Path]] = {
    "own": lambda path, rows: write(path, rows),
    "vectors": lambda path, rows: write(path, rows, configuration={"delta.enableDeletionVectors": "true"}),
    "pyarrow": by_pyarrow,
    "pyarrow v2": lambda path, rows: by_pyarrow(path, rows, data_page_version="2.0", compression="zstd"),
    "row groups": lambda path, rows: by_pyarrow(path, rows, row_group_size=1_000, compression="none"),
    "fallback": lambda path, rows: by_pyarrow(path, rows, dictionary_pagesize_limit=1, data_page_size=1),
    "duckdb": lambda path, rows: by_engine(
        path, rows, lambda plain, file: duckdb.from_arrow(plain).write_parquet(str(file))
    ),
    "polars": lambda path, rows: by_engine(
        path, rows, lambda plain, file: pl.DataFrame(plain).write_parquet(file)
    ),
}
STATING_ENCODINGS = ("own", "vectors", "pyarrow", "pyarrow v2", "row groups", "duckdb")
"""The writers whose footers state that all pages of a column refer to its dictionary."""


def is_excluded(table: Path, where: str) -> bool:
    explained = dv.read_table(table, columns=["id", "payload"], where=where).explain()
    assert explained.rows_decoded > 0, "bounds exclude all rows"
    return explained.bytes_read < FOOTER_AND_DICTIONARY


def ids(table: Path, where: str, columns: Any = ("id", "payload")) -> list[int | None]:
    return dv.read_table(table, columns=list(columns), where=where).to_table()["id"].to_pylist()


def expected(table: Path, where: str) -> list[int | None]:
    """Return the ids of the rows for which a predicate is true, evaluated for all rows."""
    rows = dv.read_table(table, columns={"id": "id", "kept": where}).to_table()
    return rows.filter(rows["kept"])["id"].to_pylist()


TERMS = (
    "word = '{word}'",
    "word in ('{word}', '{other}')",
    "word <> '{word}'",
    "not (word = '{word}')",
    "word is null",
    "word is not null",
    "word <=> '{word}'",
    "number = {number}",
    "number in ({number}, 3, null)",
    "coalesce(word, '{word}') = '{word}'",
)
PATHS = (
    "event:word::string = '{word}'",
    "event:inner.word::string = '{word}'",
    "event:word::string is null",
    "try_cast(event:word as int) = {number}",
    "event:number::bigint = {number}",
    "event:number::int = {number}",
    "event:number::string = '{number}'",
    "event:rare::int = {number}",
)


@pytest.fixture(scope="module", params=WRITERS)
def writer(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def table(writer: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def word(random_: random.Random, row: int) -> str | None:
        # Row groups of pyarrow have different words.
        return random_.choice([None, PRESENT[row // 1_500], "g"])

    path = WRITERS[writer](tmp_path_factory.mktemp("tables") / "table", make(1, word))
    if writer == "vectors":
        dv.delete(path, "id % 7 = 3")
    return path


def test_rows_are_those_of_the_predicate(table: Path, writer: str) -> None:
    random_ = random.Random(f"{writer} 1")
    terms = TERMS if writer in ("duckdb", "polars") else TERMS + PATHS
    for _ in range(60):
        parts = [
            random_.choice(terms).format(
                word=random_.choice("abcdefg"), other=random_.choice("abc"), number=random_.randrange(1, 7)
            )
            for _ in range(random_.randrange(1, 4))
        ]
        where = f" {random_.choice(['and', 'or'])} ".join(parts)
        rows = expected(table, where)
        assert ids(table, where) == rows, where
        counted = dv.read_table(table, columns=[], where=where).to_batches()
        assert sum(batch.num_rows for batch in counted) == len(rows), where
        if "event" in terms[-1]:
            assert ids(table, where, ("id", "event")) == rows, where


CONDITIONS = (
    "word = 'c'",
    "word in ('c', 'e')",
    "event:word::string = 'e'",
    "event:inner.word::string = 'c'",
)


def test_a_dictionary_excludes_row_groups(table: Path, writer: str) -> None:
    conditions = CONDITIONS[:2] if writer in ("duckdb", "polars") else CONDITIONS
    for where in conditions:
        assert is_excluded(table, where) == (writer in STATING_ENCODINGS), where
        assert not is_excluded(table, where.replace("'c'", "'d'").replace("'e'", "'g'")), where


def test_dictionaries_of_numbers_exclude_row_groups(tmp_path: Path) -> None:
    table = by_pyarrow(tmp_path, make(2))
    for number in ("number", "event:number::bigint", "event:number::int"):
        assert is_excluded(table, f"{number} = 3")
        assert not is_excluded(table, f"{number} = 4")
    assert is_excluded(table, "event:number::string = '3'")


def test_values_that_are_not_in_the_dictionary_are_found(tmp_path: Path) -> None:
    rows = make(11, lambda random_, row: "c" if row == 3_999 else random_.choice(PRESENT))
    table = by_pyarrow(tmp_path, rows, dictionary_pagesize_limit=1)
    chunk = pq.ParquetFile(table / "rows.parquet").metadata.row_group(0).column(1)
    assert chunk.dictionary_page_offset is not None
    assert ids(table, "word = 'c'") == ids(table, "event:word::string = 'c'") == [3_999]


def test_either_column_of_two_excludes_a_row_group(tmp_path: Path) -> None:
    table = write(tmp_path / "table", make(3))
    assert is_excluded(table, "number < 5 and event:word::string = 'c'")
    assert is_excluded(table, "event:word::string = 'c' and number < 5")
    assert not is_excluded(table, "event:word::string = 'c' or number < 5")


def test_other_values_at_the_path_are_found(tmp_path: Path) -> None:
    table = write(tmp_path / "table", make(4, lambda random_, row: 3 if row == 77 else random_.choice("24")))
    assert ids(table, "event:word::string = '3'") == [77]
    assert not is_excluded(table, "event:word::string = '1'")
    # The column of the others has all of its values.
    assert is_excluded(table, "word = '3'")


def test_a_large_dictionary_is_not_read(tmp_path: Path) -> None:
    table = by_pyarrow(tmp_path, make(5, lambda random_, row: f"{row:01000d}" if row % 2 else "m"))
    assert not is_excluded(table, "word = '1'")


def test_few_rows_are_read_without_their_dictionary(tmp_path: Path) -> None:
    table = write(tmp_path / "table", make(6))
    read = dv.read_table(table, columns=["word"], where="word = 'c'").explain()
    assert (read.rows, read.rows_decoded) == (0, ROWS)


def test_a_value_that_cannot_be_cast_is_an_error_of_its_row(tmp_path: Path) -> None:
    table = write(tmp_path / "table", make(7, lambda random_, row: "x" if row == 1_234 else "2"))
    with pytest.raises(dv.CastError) as raised:
        ids(table, "event:word::int = 3")
    assert raised.value.row == 1_234


def test_rows_after_an_excluded_row_group_are_returned_once(tmp_path: Path) -> None:
    # The cast fails in the second row group with rows, which are then read again as Variants.
    table = by_pyarrow(
        tmp_path,
        make(8, lambda random_, row: random_.choice("bd" if row < 2_000 else "2" if row < 3_000 else "2x")),
        row_group_size=1_000,
    )
    number = "case when event:word::string = '2' then event:word::int end"
    columns = {"id": "id", "payload": "payload", "number": number}
    found = dv.read_table(table, columns=columns, where="word in ('2', 'x')").to_table()
    words = dv.read_table(table, columns=["id", "word"]).to_table().to_pylist()
    assert found.select(["id", "number"]).to_pylist() == [
        {"id": row["id"], "number": 2 if row["word"] == "2" else None} for row in words if row["word"] in "2x"
    ]


def test_a_delete_that_matches_nothing_reads_dictionaries(tmp_path: Path) -> None:
    table = write(tmp_path / "table", make(9), configuration={"delta.enableDeletionVectors": "true"})
    assert dv.delete(table, "event:word::string = 'c' and payload > ''").version is None
    deleted = dv.delete(table, "event:word::string = 'd' and payload > ''")
    assert deleted.rows_deleted == len([row for row in make(9)["word"].to_pylist() if row == "d"])


def test_dictionaries_of_an_object_store_are_not_read_on_their_own(tmp_path: Path) -> None:
    table: Any = f"memory://{tmp_path.name}/table"
    write(table, make(10))
    assert ids(table, "word = 'c'") == []
    assert not is_excluded(table, "word = 'c'")
