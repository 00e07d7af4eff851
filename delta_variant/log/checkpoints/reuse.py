"""Which sidecars of the last checkpoint are also those of the next one (PROTOCOL.md, "V2 Spec Checkpoints").

A sidecar stays as it is if all its files are still in the table, and it has nothing else. Later files are
sorted among themselves only, so that their sidecars have wider bounds: all sidecars are written again once a
quarter of the files is not in the order of the last time. A table that grows pays for this a few times for
each of its files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa

from ... import _native
from ...protocol.actions import Sidecar
from ..file_set import FileList, Part, in_order
from ..file_tables import FileKeys, drop_files
from .reading import SidecarPart

__all__ = ["Kept", "keep_sidecars"]

KEY_COLUMNS = ("path", "deletion_vector")

LEAST_ORDERED = 0.75
"""The share of files that are in sidecars of the last complete order."""


class Kept(msgspec.Struct, frozen=True):
    """Sidecars that stay as they are, with `num_files` files, and the files that are in none of them."""

    sidecars: Sequence[Sidecar]
    num_files: int
    others: FileList


class _Found(msgspec.Struct, frozen=True):
    """A part of the last checkpoint: how many of its files remain, and whether they are all that it has."""

    part: Part
    num_files: int
    is_unchanged: bool

    @property
    def is_ordered(self) -> bool:
        return self.is_unchanged and _is_ordered(self.part)


def keep_sidecars(
    files: FileList, safe: Collection[str], layout: _native.DataFile, sidecar_files: int
) -> Kept | None:
    """Return the sidecars that a checkpoint of some files keeps, None if all of them are written again.

    Only sidecars with the paths `safe` are kept. `layout` has the schema of new sidecars, which have up to
    `sidecar_files` files. Files of a sidecar that does not have half as many, and is not of the last complete
    order, are joined with those of later commits. Raises MalformedLogError.
    """
    if not any(map(_is_ordered, files.parts)):
        return None
    found = list(in_order(lambda part: _find(part, files.touched, safe, layout), files.parts))
    total = sum(each.num_files for each in found) + sum(batch.num_rows for batch in files.added)
    if sum(each.num_files for each in found if each.is_ordered) < LEAST_ORDERED * total:
        return None
    kept = [
        each
        for each in found
        if each.is_ordered or (each.is_unchanged and each.num_files * 2 >= sidecar_files)
    ]
    unchanged = {id(each.part) for each in kept}
    return Kept(
        [each.part.action for each in kept if isinstance(each.part, SidecarPart)],
        sum(each.num_files for each in kept),
        replace(files, parts=[part for part in files.parts if id(part) not in unchanged]),
    )


def _is_ordered(part: Part) -> bool:
    return part.summary is not None and part.summary.is_ordered


def _find(part: Part, touched: FileKeys, safe: Collection[str], layout: _native.DataFile) -> _Found:
    if not isinstance(part, SidecarPart) or part.path not in safe:
        batches = (batch for piece in part.pieces() for batch in piece.batches(KEY_COLUMNS))
        return _Found(part, sum(_remaining(batches, touched)), is_unchanged=False)
    file = part.open()
    num_files = sum(_remaining(file.files(KEY_COLUMNS), touched))
    # Without a summary, plans would read the sidecar each time.
    is_unchanged = (
        part.summary is not None and file.data.num_rows == num_files > 0 and file.data.has_schema_of(layout)
    )
    return _Found(part, num_files, is_unchanged)


def _remaining(batches: Iterable[pa.RecordBatch], touched: FileKeys) -> Iterator[int]:
    drop = drop_files(touched)
    return (drop(batch).num_rows for batch in batches)
