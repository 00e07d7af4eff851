"""List `_delta_log` and parse the names of its files (PROTOCOL.md, "File Types")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from ..errors import MalformedLogError, TableNotFoundError
from ..storage.objects import StoredFile
from ..storage.store import Store, exists, file_info, list_file_info, read_if_present

if TYPE_CHECKING:
    from ..storage.unity import CatalogTable, LoadedTable

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
STAGED_COMMITS = f"{LOG}/_staged_commits"

LAST_VERSION = 2**63 - 1
"""The greatest version that a table can have: Delta stores versions as 64-bit integers."""

_COMMIT = re.compile(r"([0-9]{20})\.json")
_COMPACTION = re.compile(r"([0-9]{20})\.([0-9]{20})\.compacted\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>[0-9]{20})\.checkpoint"
    r"(?:\.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})|\.(?P<unique>[0-9A-Fa-f-]{36}))?\.(?:parquet|json)"
)
_VERSIONED = re.compile(
    r"([0-9]{20})(?:\.([0-9]{20}))?\.(?:json|crc|compacted\.json|checkpoint\..*(?:parquet|json))"
)


def commit_file_name(version: int) -> str:
    """Return the path of a version's commit, relative to the table's root."""
    return f"{LOG}/{version:020d}.json"


def staged_file_name(name: str) -> str:
    """Return the path of a staged commit, relative to the table's root."""
    return f"{STAGED_COMMITS}/{name}"


def managing_catalog(store: Store) -> CatalogTable | None:
    """Return the table in the catalog that decides on commits, None if the file system does."""
    return store.catalog if store.catalog is not None and store.catalog.manages_commits else None


def commit_path(store: Store, version: int) -> str:
    """Return the path of a version's commit: the staged one if it was not published at the last listing."""
    catalog = managing_catalog(store)
    staged = (each for each in (catalog.loaded.commits if catalog else ()) if each.version == version)
    found = next(staged, None)
    return commit_file_name(version) if found is None else staged_file_name(found.file_name)


def commit_version(name: str) -> int | None:
    """Return the version in the name of a commit file, None for another file."""
    found = _COMMIT.fullmatch(name)
    return None if found is None else _version(found[1])


class CheckpointName(msgspec.Struct, frozen=True):
    """The parts of a checkpoint file's name; `part` and `parts` are None for a checkpoint of one file."""

    version: int
    part: int | None
    parts: int | None


def checkpoint_name(name: str) -> CheckpointName | None:
    """Parse the name of a checkpoint file; return None for another file."""
    found = _CHECKPOINT.fullmatch(name)
    if found is None or (version := _version(found["version"])) is None:
        return None
    if found["part"] is None:
        return CheckpointName(version, None, None)
    return CheckpointName(version, int(found["part"]), int(found["parts"]))


def impossible_version(name: str) -> int | None:
    """Return the version in a file name that exceeds `LAST_VERSION`, or None."""
    found = _VERSIONED.fullmatch(name)
    numbers = [int(text) for text in found.groups() if text is not None] if found else []
    return next((number for number in numbers if number > LAST_VERSION), None)


def file_span(name: str) -> Span | None:
    """Return the versions in the name of a versioned file, such as a checksum; None for another file."""
    found = _VERSIONED.fullmatch(name)
    return None if found is None else Span(int(found[1]), int(found[2] or found[1]))


def _version(text: str) -> int | None:
    number = int(text)
    return number if number <= LAST_VERSION else None


class CheckpointFiles(msgspec.Struct, frozen=True):
    """The files of one complete checkpoint."""

    version: int
    paths: tuple[str, ...]


class Span(msgspec.Struct, frozen=True):
    """The versions from `first` to `last` inclusive, in one file: a commit or a log compaction."""

    first: int
    last: int

    @property
    def is_commit(self) -> bool:
        return self.first == self.last

    @property
    def path(self) -> str:
        """Return the path of the file, relative to the table's root."""
        if self.is_commit:
            return commit_file_name(self.first)
        return f"{LOG}/{self.first:020d}.{self.last:020d}.compacted.json"

    @property
    def commits(self) -> Iterator[Span]:
        """Yield the commits of these versions, which have the same actions as the compaction."""
        return (Span(version, version) for version in range(self.first, self.last + 1))


class Listing(msgspec.Struct, frozen=True):
    """The content of a log: commits by version, log compactions, and complete checkpoints, newest first."""

    commits: Mapping[int, StoredFile]
    compactions: tuple[Span, ...]
    checkpoints: tuple[CheckpointFiles, ...]

    @property
    def latest(self) -> int:
        """Return the latest version in the log, or -1."""
        return max(max(self.commits, default=-1), max((c.version for c in self.checkpoints), default=-1))

    def has(self, version: int) -> bool:
        """Return whether a commit or a compaction starts at `version`."""
        return version in self.commits or any(span.first == version for span in self.compactions)

    def spans(self, first: int, last: int, uri: str) -> list[Span]:
        """Return the files of the versions from `first` to `last`, with compactions where they exist.

        Raises MalformedLogError for a missing version.
        """
        longest: dict[int, int] = {}
        for span in self.compactions:
            if span.last <= last:
                longest[span.first] = max(span.last, longest.get(span.first, -1))
        spans: list[Span] = []
        while first <= last:
            if first not in longest and first not in self.commits:
                raise MalformedLogError(
                    f"{commit_file_name(first)} of {uri} is missing although later versions exist; "
                    f"restore it, or load a version before {first}",
                    table=uri,
                    file=f"{uri}/{commit_file_name(first)}",
                    version=first,
                )
            spans.append(Span(first, longest.get(first, first)))
            first = spans[-1].last + 1
        return spans


def list_log(store: Store, start: int | None) -> Listing:
    """List the log; if `start` is set, only from this version on.

    The catalog of a table that it manages says which version is the latest, and which commits are not
    published. Raises MalformedLogError if its latest version is neither published nor among these.
    """
    # "." sorts before every digit and letter, so this is directly before the first file of version `start`.
    after = None if start is None else f"{LOG}/{start:020d}"
    catalog = managing_catalog(store)
    if catalog is None:
        listing = listing_of(list_file_info(store, LOG, after))
        return listing if store.local_root is None else _with_missed_commits(store, listing)
    # First the catalog: a commit that is missing in its answer is published before the listing.
    loaded = catalog.refresh()
    listing = _with_ratified(listing_of(list_file_info(store, LOG, after)), loaded, start or 0)
    latest = loaded.latest_table_version or 0
    if listing.latest < latest and (start or 0) <= latest:
        raise MalformedLogError(
            f"{commit_file_name(latest)} of {store.uri} is missing although the catalog says that version "
            f"{latest} is published",
            table=store.uri,
            file=f"{store.uri}/{commit_file_name(latest)}",
            version=latest,
        )
    return listing


def _with_missed_commits(store: Store, listing: Listing) -> Listing:
    """Return the listing of a local folder with commits that it lacks between others.

    A file that is created while a folder is listed may be missing, although a later one is in the listing.
    """
    commits = {**listing.commits}
    for first, second in pairwise(sorted(listing.commits)):
        for version in range(first + 1, second):
            path = commit_file_name(version)
            if not exists(store, path):
                break
            commits[version] = replace(file_info(store, path), path=path)
    return msgspec.structs.replace(listing, commits=dict(sorted(commits.items())))


def _with_ratified(listing: Listing, loaded: LoadedTable, start: int) -> Listing:
    """Return a listing with the ratified commits, and without versions that the catalog does not have yet."""
    latest = loaded.latest_table_version or 0
    commits = {version: file for version, file in listing.commits.items() if version <= latest}
    for each in loaded.commits:
        if each.version >= start:
            path = staged_file_name(each.file_name)
            commits[each.version] = StoredFile(path, each.file_size, each.file_modification_timestamp)
    return Listing(
        dict(sorted(commits.items())),
        tuple(span for span in listing.compactions if span.last <= latest),
        tuple(found for found in listing.checkpoints if found.version <= latest),
    )


def listing_of(stored: Iterable[StoredFile]) -> Listing:
    """Return the content of a log from the files in its folder."""
    files = {file.path.removeprefix(f"{LOG}/"): file for file in stored}
    versions = ((commit_version(name), file) for name, file in files.items())
    commits = {version: file for version, file in versions if version is not None}
    compactions = (span for name in files if (span := compaction_of(name)) is not None)
    checkpoints = sorted(_complete_checkpoints(files), key=lambda c: (c.version, c.paths), reverse=True)
    return Listing(commits, tuple(compactions), tuple(checkpoints))


def compaction_of(name: str) -> Span | None:
    """Return the versions in the name of a log compaction, None for another file."""
    found = _COMPACTION.fullmatch(name)
    if found is None or not int(found[1]) < int(found[2]) <= LAST_VERSION:
        return None
    return Span(int(found[1]), int(found[2]))


def _complete_checkpoints(names: Iterable[str]) -> Iterator[CheckpointFiles]:
    by_parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        if (found := checkpoint_name(name)) is None:
            continue
        if found.part is None or found.parts is None:
            yield CheckpointFiles(found.version, (f"{LOG}/{name}",))
        else:
            by_parts.setdefault((found.version, found.parts), {})[found.part] = f"{LOG}/{name}"
    for (version, parts), paths in by_parts.items():
        if len(paths) == parts and min(paths) == 1 and max(paths) == parts:
            yield CheckpointFiles(version, tuple(paths[part] for part in sorted(paths)))


class _LastCheckpoint(msgspec.Struct):
    version: int


def checkpoint_hint(store: Store) -> int | None:
    """Return the version in `_last_checkpoint`, None if the file is missing or malformed."""
    data = read_if_present(store, LAST_CHECKPOINT)
    try:
        version = msgspec.json.decode(data or b"", type=_LastCheckpoint).version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return version if 0 <= version <= LAST_VERSION else None


def table_not_found(store: Store) -> TableNotFoundError:
    return TableNotFoundError(
        f"there is no Delta table at {store.uri}: it has no {LOG}; check the location, or create the table "
        "with a write",
        table=store.uri,
    )
