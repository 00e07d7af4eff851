"""The options that several or all commands have, and the parsers of their values."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, Any, Literal

import typer

from .. import _options
from .._redaction import SHORTEST_SECRET
from ..storage.store import RememberedTable, TableLocation
from .help import COMMON_OPTIONS

Text = str | None
Texts = list[str] | None


def argument(metavar: str, text: str, **settings: Any) -> Any:
    """Return the declaration of an argument: its name in the usage, and its help."""
    return typer.Argument(metavar=metavar, help=text, **settings)


def option(text: str, metavar: str | None = None, names: str = "", **settings: Any) -> Any:
    """Return the declaration of an option: its help, the name of its value, and its names.

    Without `names`, the parameter names the option. A flag has names, because it has no opposite.
    """
    return typer.Option(*names.split(), metavar=metavar, help=text, **settings)


def _reject_memory(uri: str) -> str:
    if uri.lower().startswith("memory:"):
        raise typer.BadParameter(
            f"cannot use {uri!r} because it exists only in the memory of this command: pass a path or a URI"
        )
    return uri


Table = Annotated[str, argument("TABLE", "The path or URI of a Delta table.", callback=_reject_memory)]
FileOrTable = Annotated[str, argument("FILE|TABLE", "A Parquet file or a Delta table.")]
Wide = Annotated[bool, option("Print all columns and whole cells, even if lines wrap.", names="--wide -w")]
Expanded = Annotated[bool, option("Print one line for each column of a row.", names="--expanded -x")]
Yes = Annotated[bool, option("Do not show the plan and ask.", names="--yes -y")]
DryRun = Annotated[bool, option("Print the plan, and change nothing.", names="--dry-run")]
Json = Annotated[bool, option("Print JSON instead of text.", names="--json")]
Version = Annotated[int | None, option("The table version; latest by default.", "N", min=0)]
Timestamp = Annotated[
    Text, option("The latest version at this time: 2026-11-21T09:30+01:00; UTC by default.", "TIME")
]
TimeZone = Annotated[str, option("Time zone of local times in SQL, such as Europe/Berlin or +02:00.", "ZONE")]
ResidualRows = Annotated[
    Literal["separate", "inline"],
    option("Write rows that do not fit the shredded columns to other files, or in order."),
]
TargetFileSize = Annotated[str, option("Target size of data files.", "SIZE")]
Compression = Annotated[
    _options.Compression | None,
    option("The compression of data files; by default that of the table, or zstd."),
]
Columns = Annotated[
    Texts, option("A column, such as user=event:user.id::bigint; repeatable.", "SQL", "--column -c")
]
VariantColumns = Annotated[
    Texts,
    option(
        "A column of JSON text in Parquet or CSV that becomes a Variant; repeatable.",
        "NAME",
        "--variant-column",
    ),
]
Page = Annotated[Text, option("Write an HTML page.", "FILE")]

# Every command has these.

_STORAGE_OPTIONS: ContextVar[Mapping[str, str] | None] = ContextVar("storage_options", default=None)
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""The least severe messages on standard error without --verbose, with one, and with two."""


def _common(
    name: str, kind: Any, default: object, text: str, metavar: str | None = None, **settings: Any
) -> inspect.Parameter:
    declared = Annotated[kind, option(text, metavar, rich_help_panel=COMMON_OPTIONS, **settings)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=declared)


COMMON = (
    _common(
        "storage_option",
        Texts,
        None,
        "An option of the object store, such as AWS_REGION=eu-west-1; repeatable.",
        "KEY=VALUE",
    ),
    _common(
        "verbose",
        int,
        0,
        "Log what is read, skipped, written and committed; -vv also logs each file and retry.",
        names="--verbose -v",
        count=True,
        show_default=False,
    ),
    _common("quiet", bool, False, "Print no progress, hints and warnings.", names="--quiet -q"),
)


def storage_options() -> Mapping[str, str] | None:
    """Return the storage options of the running command; None means the environment alone."""
    return _STORAGE_OPTIONS.get()


def handle(table: str) -> TableLocation:
    """Return a handle of a table with the storage options of the running command."""
    return RememberedTable(table, storage_options())


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also accepts the common options."""

    @wraps(command)
    def run(*, storage_option: list[str] | None, verbose: int, quiet: bool, **arguments: Any) -> None:
        if quiet and verbose:
            raise typer.BadParameter("pass at most one of --quiet and --verbose")
        level = logging.ERROR if quiet else LEVELS[min(verbose, len(LEVELS) - 1)]
        logger = logging.getLogger("delta_variant")
        before = logger.level
        logger.setLevel(level)
        token = _STORAGE_OPTIONS.set(parse_pairs("--storage-option", storage_option) or None)
        try:
            command(**arguments)
        finally:
            _STORAGE_OPTIONS.reset(token)
            logger.setLevel(before)

    own = inspect.signature(command, eval_str=True)
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *COMMON])  # type: ignore[attr-defined]
    return run


# Values of options.

NAMED_EXPRESSION = re.compile(r"(?P<name>\w+)\s*=(?!=)(?P<expression>.+)", re.DOTALL)
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|KiB|MiB|GiB)?", re.IGNORECASE | re.ASCII)
UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_size(text: str) -> int:
    """Return the number of bytes of a size such as 128MB. Raise BadParameter for invalid text."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"invalid size {text!r}: expected a number of bytes or a size such as 128MB")
    return int(float(found[1]) * UNITS[(found[2] or "B").lower()])


def parse_columns(texts: Texts) -> list[str] | None:
    """Return columns such as user=event:user.id::bigint as SQL expressions with names."""
    return [_select_item(text) for text in texts] if texts else None


def _select_item(text: str) -> str:
    found = NAMED_EXPRESSION.fullmatch(text)
    return f"{found['expression']} as `{found['name']}`" if found else text


PAIRS: Mapping[str, str] = {
    "--add-column": "NAME=TYPE",
    "--add-constraint": "NAME=SQL",
    "--change-type": "NAME=TYPE",
    "--extract": "NAME=SQL",
    "--rename-column": "NAME=NEW",
    "--table": "NAME=TABLE",
}
"""What the text of an option is if it is not a key and a value."""


def parse_pairs(option: str, texts: Texts) -> Mapping[str, str]:
    """Return NAME=VALUE texts as a mapping. Raise BadParameter for another text."""
    pairs: dict[str, str] = {}
    for name, value in (parse_pair(option, text) for text in texts or ()):
        if name in pairs:
            raise typer.BadParameter(f"{option} sets {name!r} twice: pass it once")
        pairs[name] = value
    return pairs


def parse_pair(option: str, text: str | None) -> tuple[str, str]:
    """Return name and value of a text such as NAME=VALUE. Raise BadParameter for another text."""
    name, equals, value = (text or "").partition("=")
    if not equals or not name.strip() or not value.strip():
        # The text of a storage option may be a secret.
        may_be_secret = option == "--storage-option" and len(text or "") >= SHORTEST_SECRET
        shown = "" if may_be_secret else f" {text!r}"
        raise typer.BadParameter(f"invalid {option}{shown}: expected {PAIRS.get(option, 'KEY=VALUE')}")
    return name.strip(), value.strip()
