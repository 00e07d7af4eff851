"""Compare the footer of a Parquet file with its values."""

from __future__ import annotations

from collections.abc import Iterator

from ...data_file.reader import NativeFile

__all__ = ["footer_differences"]


def footer_differences(file: NativeFile) -> Iterator[tuple[str, str]]:
    """Yield column and sentence for each statistic of row groups and pages that excludes a value.

    Bloom filters are such statistics, too. Raises DataFileError for a page that cannot be decoded.
    """
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for path, row_group, page, what, stated, actual in file.check_footer():
        where = f"row group {row_group}" + ("" if page is None else f", page {page}")
        found.setdefault((".".join(path), what), []).append((where, stated, actual))
    for (name, member), places in found.items():
        what = "the Bloom filter" if member == "bloom_filter" else member
        where, stated, actual = places[0]
        more = f" (and {len(places) - 1:,} more)" if len(places) > 1 else ""
        yield name, f"{where}: {what} of {name} is {stated}, but the values have {actual}{more}"
