"""The imports of the library and of the conformance kit: layers, cycles, owners of names and packages."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Rules:
    """The rules of a package: layers, owners, and entry points.

    The lowest layer is the first. A module imports only from lower layers, and the members of one layer do
    not import each other. The member "" is the root `__init__`. Without layers, only cycles are forbidden.

    `owners` has the modules and packages that may import a third-party package; "" stands for all.
    `entry_points` are the packages whose `__init__` exports names that other modules define.
    """

    package: str
    layers: tuple[set[str], ...]
    owners: Mapping[str, set[str]]
    entry_points: Set[str] = frozenset()


LAYERS = (
    {"errors"},
    {"_checks", "_compressed", "_arrow", "_html", "_logging", "_options", "_packing", "_pandas"}
    | {"_progress", "_redaction", "_system_errors", "_threads", "_version"},
    {"_native"},
    {"variant"},
    {"protocol", "expressions", "_text"},
    {"storage", "_progress_bar"},
    {"log", "data_file", "execution"},
    {"input"},
    {"read"},
    {"write"},
    {"operations"},
    {"views"},
    {"statements"},
    {"queries", "spark", "functions", "table", "typing"},
    {"reports"},
    {"cli"},
    {"", "__main__"},
)

OWNERS = {
    "_native": {
        "data_file",
        "input.json_lines",
        "log.checkpoints",
        "log.deletion_vectors",
        "log.file_tables",
        "operations.legacy",
        "protocol.statistics",
        "variant",
    },
    "botocore": {"storage.options"},
    "deltalake": {"table"},
    "duckdb": {"queries.direct", "queries.relations", "views.duckdb"},
    "fsspec": {"views.filesystem"},
    "jsonpath_rfc9535": {"variant.paths"},
    "msgspec": {"expressions", "protocol", "storage.unity", "log", "input", "read", "write"}
    | {"operations", "queries", "spark", "reports", "cli", "statements", "views"},
    "obstore": {"storage"},
    "pandas": {"read.scan", "table", "views.frames"},
    "polars": {"read.lazy_frame", "read.scan", "table", "views.frames"},
    "py4j": {"spark"},
    "pyarrow": {""},
    "pyspark": {"spark"},
    "rich": {"_progress_bar", "cli"},
    "sqlglot": {"spark.queries"},
    "typer": {"cli"},
}

# The grader and its decoder use nothing of the library, which they grade.
KIT_OWNERS = {
    "chdb": {"engines.chdb"},
    "datafusion": {"engines.datafusion"},
    "delta_kernel_rust_sharing_wrapper": {"engines.delta_kernel"},
    "delta_variant": {"case", "command", "engines.ours", "page", "results", "written_layout"},
    "deltalake": {"engines.datafusion", "engines.deltalake"},
    "duckdb": {"engines.duckdb"},
    "polars": {"engines.polars"},
    "pyarrow": {""},
    "pyiceberg": {"engines.pyiceberg"},
    "pysail": {"engines.spark"},
    "pyspark": {"engines.spark"},
    "rich": {"command"},
    "typer": {"command"},
}

ENTRY_POINTS = {"", "functions", "spark", "typing"}

LIBRARY = Rules("delta_variant", LAYERS, OWNERS, ENTRY_POINTS)
KIT = Rules("delta_variant_conformance", (), KIT_OWNERS)
ROOTS = {LIBRARY.package: PROJECT / LIBRARY.package, KIT.package: PROJECT / "conformance" / KIT.package}


@dataclass(frozen=True)
class Import:
    """One imported name. `target` is below the package if `is_ours`, and ends with the name."""

    line: int
    target: str
    is_ours: bool
    is_relative: bool


def sources(root: Path) -> list[Path]:
    """Return the source files of the package, the stub of the native library included."""
    return sorted([*root.rglob("*.py"), *root.rglob("*.pyi")])


def name_of(file: Path, root: Path) -> str:
    """Return the dotted name of a source file below the package, "" for the root `__init__`."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(file: Path, root: Path, rules: Rules = LIBRARY) -> Iterator[Import]:
    """Yield everything that `file` imports, inside functions and `TYPE_CHECKING` too."""
    package = file.relative_to(root).parts[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, _, rest = alias.name.partition(".")
                is_ours = first == rules.package
                yield Import(node.lineno, rest if is_ours else alias.name, is_ours, False)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            names = (*base, *([node.module] if node.module else []))
            yield from (Import(node.lineno, ".".join((*names, each.name)), True, True) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            first, _, rest = (node.module or "").partition(".")
            for alias in node.names:
                if first == rules.package:
                    target = f"{rest}.{alias.name}".removeprefix(".")
                    yield Import(node.lineno, target, True, False)
                else:
                    yield Import(node.lineno, f"{node.module}.{alias.name}", False, False)


def is_within(module: str, packages: Collection[str]) -> bool:
    return any(not each or module == each or module.startswith(f"{each}.") for each in packages)


def violations(root: Path, rules: Rules = LIBRARY) -> Iterator[str]:
    """Yield a message for each import that breaks a rule, and for each module without a layer."""
    for file in sources(root):
        module = name_of(file, root)
        if rules.layers and not any(member_of(module) in layer for layer in rules.layers):
            yield f"{file.relative_to(root)} has no layer: add {member_of(module)!r} to LAYERS"
        for each in imports_of(file, root, rules):
            for message in broken_rules(module, each, rules):
                yield f"{file.relative_to(root)}, line {each.line}: {message}"


def member_of(name: str) -> str:
    """Return the member of the package that a dotted name belongs to."""
    return name.split(".")[0]


def broken_rules(module: str, each: Import, rules: Rules) -> Iterator[str]:
    target, owners = each.target, rules.owners
    if each.is_ours and not each.is_relative:
        yield f"imports {rules.package}.{target} by its absolute name: use a relative import"
    owned = target.split(".")[0]
    if not each.is_ours and owned not in owners and owned not in sys.stdlib_module_names:
        yield f"{module} imports {owned}, which has no owner: add it to OWNERS"
    is_owned = owned in owners if not each.is_ours else owned == "_native"
    if is_owned and module != owned and not is_within(module, owners[owned]):
        yield f"{module} imports {owned}, which only {', '.join(sorted(owners[owned]))} may import"
    if each.is_ours and rules.layers:
        yield from upward(module, target, rules)


def upward(module: str, target: str, rules: Rules) -> Iterator[str]:
    here, there = member_of(module), member_of(target)
    if here == there:
        return
    layer_of = {member: number for number, members in enumerate(rules.layers) for member in members}
    if there not in layer_of:
        yield f"imports {target}, which is not a module: import from the module that defines the name"
    elif layer_of[there] >= layer_of.get(here, len(rules.layers)):
        yield (
            f"{here} (layer {layer_of[here]}) imports {there} (layer {layer_of[there]}):"
            " import only from lower layers"
        )


def defined_in(file: Path) -> set[str]:
    """Return the names that a module defines: functions, classes and assignments at its top."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        else:
            names |= {
                n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
    return names


def forwarded(root: Path, rules: Rules = LIBRARY) -> Iterator[str]:
    """Yield a message for each import of a name that a module does not define, or has for itself only."""
    files = {name_of(file, root): file for file in sources(root)}
    definitions = {module: defined_in(file) for module, file in files.items()}
    for module, file in files.items():
        for each in imports_of(file, root, rules):
            owner, _, name = each.target.rpartition(".")
            if name == "*" and "__all__" in definitions.get(owner, ()):
                continue
            if each.is_ours and each.target not in files and name not in definitions.get(owner, set()):
                where = f"{file.relative_to(root)}, line {each.line}"
                yield f"{where}: {owner or rules.package} does not define {name}"
            elif each.is_ours and each.target not in files and name.startswith("_"):
                yield f"{file.relative_to(root)}, line {each.line}: {name} is private to {owner}"
        if file.name == "__init__.py" and module not in rules.entry_points:
            exported = exports_of(file) - definitions[module]
            yield from (
                f"{file.relative_to(root)} exports {name}, which it does not define" for name in exported
            )


def exports_of(file: Path) -> set[str]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def cycle(root: Path) -> list[str]:
    """Return the modules of an import cycle, each importing the next, or an empty list."""
    files = {name_of(file, root): file for file in sources(root)}
    edges: dict[str, set[str]] = {module: set() for module in files}
    for module, file in files.items():
        for each in imports_of(file, root):
            if each.is_ours:
                target = each.target if each.target in files else each.target.rpartition(".")[0]
                edges[module] |= {target} & set(files)
    done: set[str] = set()
    for module in sorted(files):
        if found := _cycle_from(module, edges, [], done):
            return found
    return []


def _cycle_from(module: str, edges: dict[str, set[str]], path: list[str], done: set[str]) -> list[str]:
    if module in path:
        return [*path[path.index(module) :], module]
    if module in done:
        return []
    for target in sorted(edges[module]):
        if found := _cycle_from(target, edges, [*path, module], done):
            return found
    done.add(module)
    return []


@pytest.mark.parametrize("rules", [LIBRARY, KIT], ids=lambda rules: rules.package)
def test_modules_import_only_from_lower_layers_and_dependencies_only_in_their_owners(rules: Rules):
    assert len(sources(ROOTS[rules.package])) > 20
    assert list(violations(ROOTS[rules.package], rules)) == []


@pytest.mark.parametrize("rules", [LIBRARY, KIT], ids=lambda rules: rules.package)
def test_names_are_imported_from_the_modules_that_define_them(rules: Rules):
    assert list(forwarded(ROOTS[rules.package], rules)) == []


@pytest.mark.parametrize("package", ROOTS)
def test_modules_do_not_import_each_other_in_a_cycle(package: str):
    assert cycle(ROOTS[package]) == []


def write(root: Path, file: str, source: str) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "source", "message"),
    [
        ("protocol/features.py", "from ..log import commits", "protocol (layer 4) imports log (layer 6)"),
        (
            "protocol/features.py",
            "from .. import data_file",
            "protocol (layer 4) imports data_file (layer 6)",
        ),
        ("log/load.py", "from .. import data_file", "log (layer 6) imports data_file (layer 6)"),
        (
            "storage/store.py",
            "def f():\n    from ..log.load import x",
            "storage (layer 5) imports log (layer 6)",
        ),
        (
            "storage/store.py",
            "if TYPE_CHECKING:\n    from ..log.load import x",
            "storage (layer 5) imports log (layer 6)",
        ),
        (
            "protocol/statistics.py",
            "from ..expressions.tree import x",
            "protocol (layer 4) imports expressions (layer 4)",
        ),
        ("_native.pyi", "from .data_file import x", "_native (layer 2) imports data_file (layer 6)"),
        (
            "read/rows.py",
            "from ..write.commit import x",
            "read (layer 8) imports write (layer 9)",
        ),
        (
            "reports/page.py",
            "from ..cli.terminal import x",
            "reports (layer 14) imports cli (layer 15)",
        ),
        (
            "log/load.py",
            "from delta_variant.errors import x",
            "imports delta_variant.errors.x by its absolute name",
        ),
        ("log/load.py", "import delta_variant.errors", "imports delta_variant.errors by its absolute name"),
        (
            "log/load.py",
            "import deltalake",
            "log.load imports deltalake, which only table may import",
        ),
        ("log/load.py", "from deltalake.writer import x", "log.load imports deltalake, which only"),
        (
            "log/load.py",
            "from .. import _native",
            "log.load imports _native, which only data_file, input.json_lines, ",
        ),
        (
            "log/load.py",
            "from .._native import x",
            "log.load imports _native, which only data_file, input.json_lines, ",
        ),
        ("log/load.py", "import requests", "log.load imports requests, which has no owner"),
        ("log/load.py", "from .. import write_table", "imports write_table, which is not a module"),
        ("helpers.py", "", "helpers.py has no layer: add 'helpers' to LAYERS"),
        ("input/files.py", "from ..read.scope import x", "input (layer 7) imports read (layer 8)"),
    ],
)
def test_a_forbidden_import_is_reported(tmp_path: Path, file: str, source: str, message: str):
    write(tmp_path, file, source)
    (found,) = violations(tmp_path)
    assert message in found


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("protocol/features.py", "import re\nfrom . import properties\nfrom .actions import Protocol"),
        ("protocol/schema/rules.py", "from ...errors import x\nfrom ..types import y\nfrom .paths import z"),
        ("variant/values.py", "from .. import _native"),
        ("_native.pyi", "import pyarrow as pa\nfrom ._options import x"),
        ("__init__.py", "from .operations.write import write_table"),
        ("operations/__init__.py", ""),
        ("operations/vacuum.py", "from ..log.load import x\nfrom .restore import y"),
        ("operations/merge/execute.py", "from ...write.partitions import x\nfrom .clauses import y"),
        ("spark/tasks.py", "import pyspark.sql\nfrom .. import data_file"),
    ],
)
def test_an_import_from_below_is_allowed(tmp_path: Path, file: str, source: str):
    write(tmp_path, file, source)
    assert list(violations(tmp_path)) == []


@pytest.mark.parametrize(
    ("file", "source", "message"),
    [
        ("engines/spark.py", "from deltalake import x", "engines.spark imports deltalake, which only"),
        (
            "decoding.py",
            "from delta_variant import decode",
            "decoding imports delta_variant, which only case,",
        ),
        ("grade.py", "import delta_variant_conformance.case", "use a relative import"),
    ],
)
def test_a_forbidden_import_in_the_kit_is_reported(tmp_path: Path, file: str, source: str, message: str):
    write(tmp_path, "engines/duckdb.py", "import duckdb\nfrom ..engine import Engine")
    assert list(violations(tmp_path, KIT)) == []
    write(tmp_path, file, source)
    (found,) = violations(tmp_path, KIT)
    assert message in found


def test_a_name_from_a_module_that_only_imports_it_is_reported(tmp_path: Path):
    write(tmp_path, "errors.py", "class StoreError(Exception): ...")
    write(tmp_path, "storage/store.py", "from ..errors import StoreError")
    write(tmp_path, "log/__init__.py", '__all__ = ["load"]\nfrom .load import load')
    write(tmp_path, "log/load.py", "from ..storage.store import StoreError\n\ndef load(): ...")
    assert list(forwarded(tmp_path)) == [
        "log/__init__.py exports load, which it does not define",
        "log/load.py, line 1: storage.store does not define StoreError",
    ]


def test_an_import_of_a_private_name_is_reported(tmp_path: Path):
    write(tmp_path, "_text.py", "def _quote(): ...")
    write(tmp_path, "log/load.py", "from .. import _text\nfrom .._text import _quote")
    assert list(forwarded(tmp_path)) == ["log/load.py, line 2: _quote is private to _text"]


def test_a_cycle_is_reported(tmp_path: Path):
    write(tmp_path, "log/load.py", "from . import commits")
    write(tmp_path, "log/commits.py", "def f():\n    from .listing import x")
    write(tmp_path, "log/listing.py", "from .load import y")
    assert cycle(tmp_path) == ["log.commits", "log.listing", "log.load", "log.commits"]
