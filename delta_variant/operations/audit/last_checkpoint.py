"""The rule of `_last_checkpoint` (PROTOCOL.md, "Last Checkpoint File")."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from ...data_file.reader import open_file
from ...errors import DeltaVariantError
from ...log.checkpoints.reading import sidecars_of
from ...log.listing import LAST_CHECKPOINT, CheckpointFiles, listing_of
from ...storage import store as storage
from .findings import Violation
from .log_survey import LogSurvey

__all__ = ["last_checkpoint"]


class _Manifest(msgspec.Struct):
    path: str | None = None


class _LastCheckpoint(msgspec.Struct, rename="camel"):
    version: int
    size: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    parts: int | None = None
    checksum: str | None = None
    v2_checkpoint: _Manifest | None = msgspec.field(default=None, name="v2Checkpoint")


def last_checkpoint(subject: LogSurvey) -> Iterator[Violation]:
    """L6: `_last_checkpoint` describes an existing checkpoint."""
    data = storage.read_if_present(subject.store, LAST_CHECKPOINT)
    if data is None:
        return
    try:
        stated = msgspec.json.decode(data, type=_LastCheckpoint)
        document = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        yield Violation(f"_last_checkpoint cannot be decoded ({error})")
        return
    version = stated.version
    checkpoints = [each for each in listing_of(subject.stored).checkpoints if each.version == version]
    if not checkpoints:
        yield Violation(f"_last_checkpoint points to version {version}, which has no checkpoint", version)
        return
    expected = json_checksum(document)
    if stated.checksum is not None and stated.checksum.lower() != expected:
        yield Violation(
            f"the checksum of _last_checkpoint is {stated.checksum}, but its content has {expected}", version
        )
    manifest = stated.v2_checkpoint and stated.v2_checkpoint.path
    if manifest:
        checkpoints = [each for each in checkpoints if each.paths[0].endswith(f"/{manifest}")]
        if not checkpoints:
            yield Violation(f"_last_checkpoint points to {manifest}, which does not exist", version)
    facts = [_facts(subject, files) for files in checkpoints]
    for name in ("size", "size_in_bytes", "num_of_add_files", "parts"):
        found, allowed = getattr(stated, name), [number for fact in facts for number in fact[name]]
        if found is not None and allowed and found not in allowed:
            field = _LastCheckpoint.__struct_encode_fields__[_LastCheckpoint.__struct_fields__.index(name)]
            yield Violation(
                f"_last_checkpoint states {field} {found:,}, but the checkpoint has {allowed[0]:,}", version
            )


def _facts(subject: LogSurvey, files: CheckpointFiles) -> Mapping[str, list[int]]:
    """Return the values that each field may have; none for what cannot be determined.

    PROTOCOL.md does not say whether the actions and bytes of sidecars count, so that writers differ. Early
    versions of delta-rs wrote the bytes to `size`, which no reader uses.
    """
    sizes = {file.path: file.size for file in subject.stored}
    try:
        sidecars = sidecars_of(subject.store, files)
        rows = sum(_num_actions(subject, path) for path in files.paths)
        more = sum(_num_actions(subject, path) for path in sidecars)
    except DeltaVariantError:
        return {"size": [], "size_in_bytes": [], "num_of_add_files": [], "parts": []}
    size = sum(sizes[path] for path in files.paths)
    size_of_sidecars = sum(sizes.get(path, 0) for path in sidecars)
    counted = subject.replay.file_counts.get(files.version)
    parts = len(files.paths)
    return {
        "size": [rows, size] if not sidecars else [rows + more, rows, more, -1],
        "size_in_bytes": [size] if not sidecars else [size + size_of_sidecars, size],
        "num_of_add_files": [] if counted is None else [counted],
        "parts": [parts] if parts > 1 else [1, 0],
    }


def _num_actions(subject: LogSurvey, path: str) -> int:
    if path.endswith(".json"):
        return sum(bool(line.strip()) for line in storage.read(subject.store, path).splitlines())
    return int(open_file(subject.store, path).num_rows)


def json_checksum(document: Mapping[str, Any]) -> str:
    """Return the MD5 of a JSON object without `checksum` in canonical form (PROTOCOL.md, "JSON checksum")."""
    rest = {name: value for name, value in document.items() if name != "checksum"}
    pairs = sorted(_canonical(rest, ""), key=lambda pair: pair[0].encode())
    text = ",".join(f"{path}={value}" for path, value in pairs)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _canonical(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _canonical(part, _joined(path, _quoted(name)))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _canonical(part, _joined(path, str(index)))
    else:
        yield path, _quoted(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _joined(path: str, step: str) -> str:
    return f"{path}+{step}" if path else step


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
