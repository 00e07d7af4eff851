"""The rows of design.md: a room imports only from lower rows, and each outside package has its doors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "delta_variant"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

ROWS = (
    {"errors", "system_errors", "_native"},
    {"arguments"},
    {
        "z85",
        "jsonpath",
        "actions",
        "properties",
        "data_types",
        "storage_options",
        "arrow_encodings",
        "moments",
        "objects",
    },
    {"features", "schema", "variant", "store"},
    {"shredding", "snapshot", "stats", "expression", "deletion_vectors"},
    {"data_file", "log", "skipping", "json_lines", "values"},
    {"commit", "table_files"},
    {"write", "read", "rewrite", "alter", "timeline", "cleanup", "audit", "repair", "draft"},
    {"spark", "conformance"},
    {"cli"},
    {"__init__"},
)
ROW_OF = {room: number for number, rooms in enumerate(ROWS) for room in rooms}

ENGINES = "conformance.engines"

# An outside package, or a room of ours that is a door itself, and the rooms or modules that may import it.
DOORS = {
    "deltalake": {"log", f"{ENGINES}.deltalake"},
    "duckdb": {f"{ENGINES}.duckdb"},
    "pysail": {f"{ENGINES}.sail"},
    "pyspark": {"spark", f"{ENGINES}.spark", f"{ENGINES}.sail", f"{ENGINES}.spark_rows"},
    "_native": {"variant", "moments", "shredding", "stats", "data_file", "json_lines", "draft"},
    "zmq": {"z85"},
    "sqlglot": {"expression"},
    "typer": {"cli"},
    "rich": {"cli"},
    "obstore": {"objects", "store"},
    "jsonpath_rfc9535": {"jsonpath"},
}


def room_of(file: Path, root: Path) -> str:
    """Return the room of a source file: its module, or the folder that a room has grown into."""
    return file.relative_to(root).parts[0].removesuffix(".py")


def module_of(file: Path, root: Path) -> str:
    """Return the dotted name of a source file within the package; a folder's own is that of the folder."""
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imported(file: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of all that `file` imports, inside functions and TYPE_CHECKING too."""
    package = (PACKAGE, *file.relative_to(root).parts[:-1])
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            names = (*base, *([node.module] if node.module else []))
            yield from ((node.lineno, ".".join((*names, alias.name))) for alias in node.names)


def violations(root: Path) -> Iterator[str]:
    """Yield a sentence for each import that rows and doors do not allow, and for each room without a row."""
    for file in sorted(root.rglob("*.py")):
        room = room_of(file, root)
        if room not in ROW_OF:
            yield f"{file.name} has no row: add its room {room!r} to ROWS, where design.md puts it"
            continue
        for line, name in imported(file, root):
            for sentence in judge(module_of(file, root), name.split(".")):
                yield f"{file.relative_to(root)}, line {line}: {sentence}"


def judge(module: str, name: list[str]) -> Iterator[str]:
    room = module.split(".")[0]
    is_ours = name[0] == PACKAGE
    target = (name[1] if len(name) > 1 else "__init__") if is_ours else name[0]
    if target in DOORS and not DOORS[target] & {room, module}:
        yield f"{module} imports {target}, whose doors are {', '.join(sorted(DOORS[target]))}"
    if not is_ours or target == room:
        return
    if target not in ROW_OF:
        yield f"{room} imports {'.'.join(name)}, which is no room: import from the module that owns the name"
    elif ROW_OF[target] >= ROW_OF[room]:
        rows = f"{room} (row {ROW_OF[room]}) imports {target} (row {ROW_OF[target]})"
        yield f"{rows}: only lower rows may be imported"


def test_every_room_imports_only_from_lower_rows_and_through_its_doors():
    assert list(violations(ROOT)) == []


@pytest.mark.parametrize(
    ("file", "source", "sentence"),
    [
        ("features.py", "from .schema import parse", "features (row 3) imports schema (row 3)"),
        ("features.py", "from . import schema", "features (row 3) imports schema (row 3)"),
        ("actions.py", "def f():\n    from delta_variant import log", "actions (row 2) imports log (row 5)"),
        ("stats.py", "if TYPE_CHECKING:\n    from .commit import x", "stats (row 4) imports commit (row 6)"),
        ("schema/rules.py", "from ..features import FEATURES", "schema (row 3) imports features (row 3)"),
        (
            "read.py",
            "import deltalake",
            "read imports deltalake, whose doors are conformance.engines.deltalake, log",
        ),
        ("write.py", "from deltalake.writer import x", "write imports deltalake, whose doors are"),
        ("write.py", "from ._native import x", "write imports _native, whose doors are"),
        (
            "conformance/judge.py",
            "import duckdb",
            "conformance.judge imports duckdb, whose doors are conformance.engines.duckdb",
        ),
        (
            "conformance/engines/sail.py",
            "from deltalake import x",
            "conformance.engines.sail imports deltalake",
        ),
        (
            "commit.py",
            "from delta_variant import write_table",
            "imports delta_variant.write_table, which is no room",
        ),
        ("helpers.py", "", "helpers.py has no row"),
    ],
)
def test_a_forbidden_import_is_named(tmp_path, file, source, sentence):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    (found,) = violations(tmp_path)
    assert sentence in found


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("features.py", "from .actions import Protocol\nfrom . import properties"),
        (
            "schema/rules.py",
            "from .column_mapping import x\nfrom ..data_types import y\nfrom ..errors import z",
        ),
        ("log.py", "import deltalake"),
        ("__init__.py", "from .write import write_table"),
        ("conformance/engines/duckdb.py", "import duckdb\nfrom ..engine import Engine"),
        ("spark/worker.py", "import pyspark.sql\nfrom ..data_file import write"),
    ],
)
def test_an_import_from_below_is_allowed(tmp_path, file, source):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    assert list(violations(tmp_path)) == []
