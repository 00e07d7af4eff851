"""The command `conformance`."""

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
            metavar="PATH",
            help="A folder or an archive of cases or of parquet-testing; repeatable. Default: "
            "protocol_fixtures in a clone, or the installed package delta-variant-cases.",
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"One of {', '.join(ENGINES)}; repeatable. Default: all."),
    ] = None,
    packages: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="A folder with the packages of engines: DIR/NAME has the Python packages or JARs of NAME.",
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Add the outcomes to a history, and print what changed since the last version of an engine.",
        ),
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write an HTML page with all details.")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="N", min=0.1, help="Seconds per case.")] = 60,
    json: Json = False,
) -> None:
    """Run engines on the specification cases for reading and writing Variants.

    The exit status is about the engines of --engine, or about this library: 1 means that a case failed, 2
    that an engine did not start.
    """
    unknown = [name for name in engine or () if name not in ENGINES]
    if unknown:
        raise typer.BadParameter(f"unknown engine {unknown[0]!r}: expected one of {', '.join(ENGINES)}")
    status = conform(cases or [], engine or [], packages, history, html, json, timeout)
    if status:
        raise typer.Exit(status)
