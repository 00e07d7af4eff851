"""The conformance kit: cases of Variant in Parquet and Delta, and how engines do in them."""

from __future__ import annotations

from .case import Case
from .corpus import load_cases
from .engines import ENGINES
from .html import html_page
from .judge import Result
from .report import json_report, matrix_rows, text_lines
from .runner import OURS, EngineRun, Run, run

__all__ = [
    "ENGINES",
    "OURS",
    "Case",
    "EngineRun",
    "Result",
    "Run",
    "html_page",
    "json_report",
    "load_cases",
    "matrix_rows",
    "run",
    "text_lines",
]
