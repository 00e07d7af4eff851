"""Commits on a disk and in a catalog that are performed before an error: their data files remain."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.tables import append_events, commit_path
from support.unity_catalog import REAL_URL, TOKEN, Catalog, ManagedTable, unity_catalog

import delta_variant as dv
from delta_variant.errors import CommitUnknownError, StoreError
from delta_variant.storage import store, unity

OPERATIONS: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "append": (lambda table: dv.write_table(table, [{"id": 3}], mode="append"), [1, 2, 3]),
    "overwrite": (lambda table: dv.write_table(table, [{"id": 3}], mode="overwrite"), [3]),
    "delete": (lambda table: dv.delete(table, "id = 1"), [2]),
    "update": (lambda table: dv.update(table, {"id": "id + 5"}, "id = 1"), [2, 6]),
    "optimize": (lambda table: dv.optimize(table, sort_by="id"), [1, 2]),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dv.write_table(tmp_path / "t", [{"id": 1}, {"id": 2}])
    return tmp_path / "t"


def ids(table: Any) -> list[int]:
    return sorted(row["id"] for row in dv.read_table(table, columns=["id"]).to_pylist())


def data_files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.parquet")}


def fail_on_commit(
    monkeypatch: pytest.MonkeyPatch, call: str, code: int, *, performed: bool, version: int = 1
) -> None:
    """Let a call of `os` fail for the commit of a version, after or instead of what it does."""
    real = getattr(os, call)

    def fail(*arguments: Any, **options: Any) -> Any:
        if not os.path.basename(arguments[0]).startswith(f".{version:020}.json."):
            return real(*arguments, **options)
        if performed:
            real(*arguments, **options)
        raise OSError(code, os.strerror(code), *map(str, arguments))

    monkeypatch.setattr(os, call, fail)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("code", [errno.ENOENT, errno.EIO, errno.ESTALE, errno.EACCES])
@pytest.mark.parametrize("performed", [True, False])
def test_a_commit_whose_staged_file_cannot_be_removed_is_committed(
    folder, monkeypatch, operation, code, performed
):
    operate, expected = OPERATIONS[operation]
    fail_on_commit(monkeypatch, "unlink", code, performed=performed)
    assert operate(folder).version == 1
    monkeypatch.undo()
    assert ids(folder) == expected


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOENT, errno.EEXIST])
def test_a_link_that_exists_after_an_error_is_the_commit(folder, monkeypatch, code):
    """A network file system repeats a link whose answer was lost, and reports the error of the repetition."""
    fail_on_commit(monkeypatch, "link", code, performed=True)
    assert OPERATIONS["append"][0](folder).version == 1
    monkeypatch.undo()
    assert ids(folder) == [1, 2, 3]


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC, errno.EPERM])
def test_a_link_that_the_file_system_rejects_is_an_error_and_leaves_no_file(folder, monkeypatch, code):
    before = data_files(folder)
    fail_on_commit(monkeypatch, "link", code, performed=False)
    with pytest.raises(StoreError, match=os.strerror(code)):
        OPERATIONS["append"][0](folder)
    assert data_files(folder) == before
    assert not list((folder / "_delta_log").glob(".*"))


@pytest.mark.parametrize("code", [errno.EIO, errno.ETIMEDOUT, errno.ESTALE])
def test_a_link_that_may_still_be_made_is_unknown_and_keeps_the_files(folder, monkeypatch, code):
    before = data_files(folder)
    fail_on_commit(monkeypatch, "link", code, performed=False)
    with pytest.raises(CommitUnknownError, match=r"cannot determine whether .*00001\.json was written"):
        OPERATIONS["append"][0](folder)
    assert len(data_files(folder)) == len(before) + 1
    assert ids(folder) == [1, 2]


def test_the_existing_file_of_another_writer_is_not_the_link(tmp_path, monkeypatch):
    root = store.open_store(tmp_path)
    path = commit_path(tmp_path, 1)
    store.put(root, f"_delta_log/{path.name}", b"other")
    fail_on_commit(monkeypatch, "link", errno.EIO, performed=False)
    with pytest.raises(CommitUnknownError):
        store.put_if_absent(root, f"_delta_log/{path.name}", b"mine")
    assert path.read_bytes() == b"other"


def test_an_error_after_the_commit_is_a_warning(folder, monkeypatch, caplog):
    """The conversion of a commit for its checksum may fail, for lack of memory or of a valid value."""

    def fail(*_: Any) -> None:
        raise ValueError("the conversion failed")

    monkeypatch.setattr("delta_variant.log.pending_commit.FileChanges.added_table", fail)
    assert OPERATIONS["append"][0](folder).version == 1
    assert "the checksum of version 1 was not written" in caplog.text
    assert ids(folder) == [1, 2, 3]


# Catalogs

model_only = pytest.mark.skipif(REAL_URL is not None, reason="a real server has no such fault")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with unity_catalog(f"file://{tmp_path_factory.mktemp('warehouse')}") as catalog:
        yield catalog


@pytest.fixture
def managed(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> ManagedTable:
    monkeypatch.setenv("UNITY_CATALOG_URL", catalog.url)
    monkeypatch.setenv("UNITY_ACCESS_TOKEN", TOKEN)
    return catalog.create()


ANSWERS = {
    "unauthorized": unity._RequestError("NotAuthorizedException: expired", "NotAuthorizedException", 401),
    "forbidden": unity._RequestError("PermissionDeniedException: no", "PermissionDeniedException", 403),
    "missing": unity._RequestError("NoSuchTableException: no", "NoSuchTableException", 404),
    "limit": unity._RequestError("ResourceExhaustedException", "ResourceExhaustedException", 429),
    "locked": unity._RequestError("locked", "UpdateRequirementConflictException", 409),
}


def answer_later(monkeypatch: pytest.MonkeyPatch, later: str, *, to_all: bool) -> None:
    """Let the catalog ratify a commit without an answer; later commits, or all requests, get none."""
    send, lost = unity._send, []

    def answer(request: Any, kind: Any) -> Any:
        is_commit = b"add-commit" in (request.data or b"")
        if lost and (is_commit or to_all):
            raise ANSWERS[later]
        found = send(request, kind)
        if is_commit:
            lost.append(1)
            raise unity._RequestError("the connection was closed")
        return found

    monkeypatch.setattr(unity, "_send", answer)


def fast(catalog: Catalog) -> dict[str, str]:
    return {**catalog.options, "max_retries": "2", "backoff_config.init_backoff": "1ms"}


@model_only
@pytest.mark.parametrize("later", ANSWERS)
def test_a_commit_that_is_ratified_before_an_error_is_found(catalog, managed, monkeypatch, later):
    answer_later(monkeypatch, later, to_all=False)
    append_events(dv.Table(managed.uri, fast(catalog)), ["1"], first=7)
    monkeypatch.undo()
    assert ids(dv.Table(managed.uri, storage_options=catalog.options)) == [7]


@model_only
@pytest.mark.parametrize("later", ANSWERS)
def test_a_commit_that_is_ratified_before_all_requests_fail_is_unknown(catalog, managed, monkeypatch, later):
    answer_later(monkeypatch, later, to_all=True)
    with pytest.raises(CommitUnknownError, match="cannot determine whether"):
        append_events(dv.Table(managed.uri, fast(catalog)), ["1"], first=7)
    monkeypatch.undo()
    assert ids(dv.Table(managed.uri, storage_options=catalog.options)) == [7]


@model_only
@pytest.mark.parametrize("later", ["unauthorized", "forbidden"])
def test_a_commit_that_the_catalog_rejects_at_once_is_an_error_and_leaves_no_file(
    catalog, managed, monkeypatch, later
):
    send = unity._send

    def reject(request: Any, kind: Any) -> Any:
        if b"add-commit" in (request.data or b""):
            raise ANSWERS[later]
        return send(request, kind)

    monkeypatch.setattr(unity, "_send", reject)
    with pytest.raises(StoreError, match="the request to the catalog failed"):
        append_events(dv.Table(managed.uri, fast(catalog)), ["1"])
    assert list(managed.root.glob("*.parquet")) == []


# Publication


def break_in_half(path: Path, content: bytes) -> None:
    path.write_bytes(content[: len(content) // 2])


GHOSTS: dict[str, Callable[[Path, bytes], Any]] = {
    "empty": lambda path, content: path.write_bytes(b""),
    "half": break_in_half,
    "other": lambda path, content: path.write_bytes(content.replace(b'"id"', b'"ix"')),
    "folder": lambda path, content: path.mkdir(),
}


@pytest.mark.parametrize("ghost", GHOSTS)
@pytest.mark.parametrize("in_memory", [1 << 20, 16])
def test_a_commit_over_another_file_of_its_version_is_not_reported_as_published(
    catalog, managed, monkeypatch, caplog, ghost, in_memory
):
    monkeypatch.setattr("delta_variant.log.catalog._LARGEST_IN_MEMORY", in_memory)
    append_events(managed.uri, ["1"], first=1)
    first, second = (managed.root / "_delta_log" / f"{version:020}.json" for version in (1, 2))
    GHOSTS[ghost](second, first.read_bytes())
    append_events(managed.uri, ["2"], first=2)
    assert "is not the commit" in caplog.text
    assert "move it out of the log" in caplog.text
    assert catalog.unpublished(managed) == [2]
    assert ids(managed.uri) == [1, 2]
    append_events(managed.uri, ["3"], first=3)
    assert (catalog.unpublished(managed), ids(managed.uri)) == ([2, 3], [1, 2, 3])
    second.rename(managed.root / "moved")
    append_events(managed.uri, ["4"], first=4)
    assert (catalog.unpublished(managed), managed.published) == ([], [0, 1, 2, 3, 4])
    assert ids(managed.uri) == [1, 2, 3, 4]


def test_commits_before_another_file_are_reported_as_published(catalog, managed, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("delta_variant.log.catalog.publish", lambda *_: None)
        append_events(managed.uri, ["1"], first=1)
    (managed.root / "_delta_log" / f"{2:020}.json").write_bytes(b"{}")
    append_events(managed.uri, ["2"], first=2)
    assert catalog.unpublished(managed) == [2]
    assert ids(managed.uri) == [1, 2]


# Requests other than that of the commit


def test_a_staged_commit_that_is_stored_before_an_error_is_not_ratified(catalog, managed, monkeypatch):
    real = os.replace

    def fail(source: Any, target: Any) -> None:
        real(source, target)
        if "_staged_commits" in str(target):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(target))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StoreError, match=os.strerror(errno.EIO)):
        append_events(managed.uri, ["1"])
    monkeypatch.undo()
    assert catalog.latest(managed) == 0
    assert list(managed.root.glob("*.parquet")) == []


@model_only
@pytest.mark.parametrize("performed", [True, False])
def test_a_report_that_fails_is_repeated_by_the_next_commit(catalog, managed, monkeypatch, caplog, performed):
    send = unity._send

    def fail(request: Any, kind: Any) -> Any:
        if b"set-latest-backfilled-version" not in (request.data or b""):
            return send(request, kind)
        if performed:
            send(request, kind)
        raise ANSWERS["forbidden"]

    with monkeypatch.context() as patched:
        patched.setattr(unity, "_send", fail)
        append_events(dv.Table(managed.uri, fast(catalog)), ["1"], first=1)
    assert "the publication of version 1 was not completed" in caplog.text
    assert catalog.unpublished(managed) == ([] if performed else [1])
    append_events(dv.Table(managed.uri, fast(catalog)), ["2"], first=2)
    assert catalog.unpublished(managed) == []
    assert ids(dv.Table(managed.uri, storage_options=catalog.options)) == [1, 2]
