"""The command that runs the conformance kit: `conformance`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...conformance.engines import ENGINES
from ..arguments import Json
from ..conformance import conform

__all__ = ["conformance"]


def conformance(
    cases: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Cases, or a checkout of parquet-testing; repeatable. By default protocol_fixtures.",
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"One of {', '.join(ENGINES)}; repeatable. By default all."),
    ] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write one page with all details.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that an engine has for a case.")] = 60,
    json: Json = False,
) -> None:
    """Hold engines against the cases of the specifications: who reads and writes Variants right.

    Exit status 1 says that an engine named by --engine, or with none named this library, did not pass all; 2
    that it did not start.
    """
    unknown = [name for name in engine or () if name not in ENGINES]
    if unknown:
        raise typer.BadParameter(f"no engine is called {unknown[0]!r}: there are {', '.join(ENGINES)}")
    status = conform(cases or ["protocol_fixtures"], engine or [], html, json, timeout)
    if status:
        raise typer.Exit(status)
