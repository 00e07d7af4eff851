"""Append rows one by one, and end without any cleanup before the step that an argument names.

`python catalog_writer.py TABLE FIRST COUNT [ratify|publish|report]`
"""

from __future__ import annotations

import os
import sys
from typing import Any

import delta_variant as dv
from delta_variant.log import catalog
from delta_variant.storage.unity import CatalogTable


def die(*_: Any) -> None:
    os._exit(9)


def main(table: str, first: str, count: str, dies_before: str = "") -> None:
    if dies_before == "ratify":
        CatalogTable.ratify = die  # type: ignore[assignment,method-assign]
    elif dies_before == "publish":
        catalog.publish = die
    elif dies_before == "report":
        CatalogTable.report_published = die  # type: ignore[assignment,method-assign]
    for number in range(int(first), int(first) + int(count)):
        dv.write_table(table, [{"id": number, "event": {"n": number}}], mode="append")


if __name__ == "__main__":
    main(*sys.argv[1:])
