"""A connection to DuckDB that takes each Variant from a file that this library wrote."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

import delta_variant as dv
from delta_variant import functions
from delta_variant.data_file.options import WriteOptions
from delta_variant.data_file.reader import Projection, open_file, read
from delta_variant.data_file.shredding import FileShredding
from delta_variant.data_file.writer import FileSeries
from delta_variant.protocol.schema.arrow import variant_field
from delta_variant.storage.store import open_store

Rows = list[str]
Source = Literal["ours", "arrow", "duckdb"]
"""Where queries take Variants from: our files, DuckDB's Variants as Parquet encodes them, or DuckDB."""

STRICT = dv.FileOptions(numeric="strict")
ANNOTATION = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
CORPUS_FILE = re.compile(r"(?:\{DATA_DIR\}|\bdata)/parquet-testing/(\w+\.parquet)")
MACRO = "CREATE TEMP MACRO ours(x) AS variant_bytes_to_variant(bytes_of_ours(x))"
FUNCTIONS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "variant_keys": ("VARCHAR[]", functions.variant_keys),
    "variant_array_length": ("INTEGER", functions.variant_array_length),
}
"""Functions of DuckDB that this library has, for calls without a path: the result in DuckDB, and ours."""

VARIANT_TABLES = """
    SELECT table_name, any_value(table_name IN (SELECT view_name FROM duckdb_views())) FROM duckdb_columns()
    WHERE data_type = 'VARIANT' AND NOT internal AND database_name = current_database()
    GROUP BY table_name
"""


class Session:
    """A connection that runs the cases of one file in order.

    `passed` is the number of tables, files and casts of the last case whose Variants are from our files.
    """

    def __init__(self, corpus: Path, folder: Path, source: Source) -> None:
        self.corpus, self.folder, self.source = corpus, folder, source
        self.passed = 0
        self.connection = duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False})
        self.connection.execute("SET timezone = 'UTC'")
        self._tables: dict[str, str] = {}
        self._files: dict[Path, int] = {}
        self._count = 0
        if source != "duckdb":
            self._create("bytes_of_ours", self._bytes, "BLOB", null_handling="default")
            self.connection.execute(MACRO)
        for name, (result, function) in FUNCTIONS.items() if source == "ours" else ():
            self._create(f"our_{name}", function, result, null_handling="special")

    def _create(self, name: str, function: Callable[..., Any], result: str, **options: Any) -> None:
        """Create a function of a Variant in DuckDB."""

        def call(variants):  # type: ignore[no-untyped-def]  # DuckDB evaluates annotations.
            return pa.chunked_array([function(variants)]).combine_chunks()

        self.connection.create_function(name, call, ["VARIANT"], result, type="arrow", **options)

    def execute(self, sql: str) -> None:
        """Run a statement that has no rows."""
        self.passed = 0
        self.connection.execute(self._locate(sql))

    def state(self, sql: str) -> bool:
        """Run a statement; return whether our files have the Variants that it wrote."""
        for name in self._tables:
            self.connection.execute(f'DROP VIEW IF EXISTS temp."{name}"')
        self.execute(sql)
        return self.source == "duckdb" or all([*self._replace_files(), *self._replace_tables(sql)])

    def ask(self, sql: str) -> Rows:
        """Return the lines of a query."""
        sql = self._locate(sql)
        names = [name for name, rows in self._tables.items() if rows.startswith("'") and _names(name, sql)]
        patterns = re.findall(r"'([^']*\.parquet)'", sql)
        files = [path for path in self._files if any(fnmatch(str(path), pattern) for pattern in patterns)]
        self.passed = len(names) + len(files)
        return self._lines(sql if self.source == "duckdb" else ask_ours(sql, self.source))

    def _lines(self, sql: str) -> Rows:
        texts = f"SELECT COLUMNS(*)::VARCHAR FROM ({sql.strip().rstrip(';')}\n)"
        found = self.connection.execute(texts).fetchall()
        return ["\t".join("NULL" if each is None else each or "(empty)" for each in row) for row in found]

    def _locate(self, sql: str) -> str:
        return CORPUS_FILE.sub(self._corpus_file, sql).replace("{TEST_DIR}", str(self.folder))

    def _corpus_file(self, match: re.Match[str]) -> str:
        found = self.corpus / match[1]
        if self.source != "ours" or not found.exists():
            return str(found)
        path = self.folder / "corpus" / match[1]
        if path not in self._files:
            path.parent.mkdir(exist_ok=True)
            shutil.copy(found, path)
            self._replace_file(path)
        return str(path)

    def _bytes(self, variants: pa.Array[Any]) -> pa.Array[Any]:
        """Return the Variants of a cast, as they are read from a file of ours."""
        if self.source == "ours":
            self.passed += 1
            table = pa.table(
                [variants], schema=pa.schema([pa.field("v", variants.type, metadata=ANNOTATION)])
            )
            variants = read_file(self._write(table))["v"]
        return pa.array([each["metadata"] + each["value"] for each in variants.to_pylist()], pa.binary())

    def _write(self, rows: pa.Table, shredding: FileShredding = None) -> Path:
        """Write rows as a file of ours, shredded as if it had many of them, and return the path."""
        self._count += 1
        path = self.folder / "written" / f"{self._count}.parquet"
        path.parent.mkdir(exist_ok=True)
        write_file(path, rows, infer_shredding(rows) if shredding is None else shredding)
        return path

    def _replace_files(self) -> Iterator[bool]:
        for path in self.folder.glob("*.parquet"):
            if self._files.get(path) != path.stat().st_mtime_ns and _has_variants(path):
                yield self._replace_file(path)

    def _replace_file(self, path: Path) -> bool:
        """Write the rows of a file again, with the same shredding, and return whether they are equal."""
        before = self._values(f"'{path}'")
        if self.source == "ours":
            self._write(read_file(path), shredding_of(path)).replace(path)
        self._files[path] = path.stat().st_mtime_ns
        self.passed += 1
        return before == self._values(f"'{path}'")

    def _replace_tables(self, sql: str) -> Iterator[bool]:
        """Put views of our files in the place of tables.

        Yields whether the tables that a statement names have the same rows there.
        """
        tables = self.connection.execute(VARIANT_TABLES).fetchall()
        for name, is_view in tables:
            if is_view or name not in self._tables or _names(name, sql):
                rows = self.connection.sql(f'SELECT * FROM "{name}"').to_arrow_table()
                self.connection.register(f"arrow_{name}", rows)
                self._tables[name] = f'"arrow_{name}"'
                if self.source == "ours" and len(rows):
                    self._tables[name] = f"'{self._write(rows)}'"
                    if _names(name, sql):
                        self.passed += 1
                        yield self._values(self._tables[name]) == self._values(f'"arrow_{name}"')
        self._tables = {name: self._tables[name] for name, _ in tables}
        for name, rows_of in self._tables.items():
            self.connection.execute(f'CREATE TEMP VIEW "{name}" AS SELECT * FROM {rows_of}')

    def _values(self, source: str) -> list[Any]:
        """Return a digest of the rows of a table, with the types of its Variants, and their number."""
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        types = [f"variant_typeof({_quoted(name)})" for name, kind, *_ in described if kind == "VARIANT"]
        row = ", ".join([*(_quoted(name) for name, *_ in described), *types])
        return self.connection.execute(
            f"SELECT count(*), md5(string_agg(row({row})::VARCHAR)) FROM {source}"
        ).fetchall()


def infer_shredding(rows: pa.Table) -> dict[tuple[str, ...], dv.ShreddingSchema]:
    """Return the shredding of the Variants in rows."""
    variants = [field.name for field in rows.schema if _is_variant(field.type)]
    return {(name,): dv.infer_shredding_schema(rows[name]) for name in variants}


def write_file(path: Path, rows: pa.Table, shredding: FileShredding) -> None:
    """Write rows as one Parquet file."""
    variants = [field.name for field in rows.schema if _is_variant(field.type)]
    series: FileSeries[None] = FileSeries(
        open_store(path.parent),
        lambda: path.name,
        WriteOptions(shredding, STRICT),
        None,
        variants,
        lambda *invalid: pytest.fail(str(invalid)),
    )
    for batch in rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]:
        series.add(batch, None)
    series.close()


def read_file(path: Path) -> pa.Table:
    """Return the rows of a Parquet file, Variants as bytes."""
    file = open_file(open_store(path.parent), path.name)
    fields = [variant_field(each.name) if _is_variant(each.type) else each for each in pq.read_schema(path)]
    projections = [Projection(field, (field.name,)) for field in fields]
    return pa.Table.from_batches(read(file, path.name, projections))


def ask_ours(sql: str, source: Source) -> str:
    """Return a query whose casts to VARIANT pass through a file of ours, with our functions."""
    root = sqlglot.parse_one(sql, read="duckdb")
    for node in reversed(list(root.walk(bfs=False))):
        if isinstance(node, exp.Cast) and node.to.is_type("variant"):
            node.replace(exp.func("ours", node.copy()))
        has_ours = isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS
        if source == "ours" and has_ours and len(node.expressions) == 1:
            node.set("this", f"our_{node.name.lower()}")
    return root.sql("duckdb")


def shredding_of(path: Path) -> dict[tuple[str, ...], dv.ShreddingSchema]:
    """Return the shredding of the Variants in a Parquet file."""
    columns = pq.read_schema(path)
    return {
        (field.name,): dv.ShreddingSchema.from_arrow(_shredded_type(field.type))
        for field in columns
        if _is_variant(field.type)
    }


def _is_variant(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and {"metadata", "value"} <= {field.name for field in kind}


def _has_variants(path: Path) -> bool:
    return any(_is_variant(field.type) for field in pq.read_schema(path))


def _shredded_type(column: pa.StructType) -> pa.DataType:
    """Return the type that ShreddingSchema has for a struct of `value` and `typed_value`."""
    if column.get_field_index("typed_value") < 0:
        return pa.null()
    typed = column.field("typed_value").type
    if pa.types.is_struct(typed):
        return pa.struct([field.with_type(_shredded_type(field.type)) for field in typed])
    return pa.list_(_shredded_type(typed.value_type)) if pa.types.is_list(typed) else typed


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _names(name: str, sql: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", sql) is not None
