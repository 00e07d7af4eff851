"""The options that every command has: storage options, and how much it reports on standard error."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, Any

import typer

from .arguments import parse_pairs
from .help import COMMON_OPTIONS

__all__ = ["storage_options", "with_common_options"]

_STORAGE_OPTIONS: ContextVar[Mapping[str, str] | None] = ContextVar("storage_options", default=None)
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""The least severe messages on standard error without --verbose, with one, and with two."""

StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="An option of the object store, such as AWS_REGION=eu-west-1; repeatable.",
        rich_help_panel=COMMON_OPTIONS,
    ),
]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Log what is read, skipped, written and committed; -vv also logs each file and retry.",
        rich_help_panel=COMMON_OPTIONS,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print no progress, hints and warnings.", rich_help_panel=COMMON_OPTIONS
    ),
]
PARAMETERS = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in (
        ("storage_option", None, StorageOption),
        ("verbose", 0, Verbose),
        ("quiet", False, Quiet),
    )
)


def storage_options() -> Mapping[str, str] | None:
    """Return the storage options of the running command, None for those of the environment only."""
    return _STORAGE_OPTIONS.get()


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
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *PARAMETERS])  # type: ignore[attr-defined]
    return run
