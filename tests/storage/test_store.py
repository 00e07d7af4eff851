"""The store: the same interface for local files and object stores."""

from __future__ import annotations

import errno
import multiprocessing
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import StoreError, VersionExistsError
from delta_variant.operations import legacy
from delta_variant.storage import store
from delta_variant.storage.objects import StoredFile

ODD_NAMES = ["a b", "100%", "a%20b", "a#b?c", "größe-東京-🎈", "k=v/part, 1'.parquet", "[x]{y}&z"]


@dataclass(frozen=True)
class FakeDeltaTable:
    table_uri: str


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_of_any_name_is_written_listed_read_and_deleted(tmp_path, name):
    root = store.open_store(tmp_path / "tab le%25#ü")
    store.put(root, f"data/{name}", b"0123456789")
    assert store.list_files(root, "data") == [f"data/{name}"]
    assert store.read(root, f"data/{name}") == b"0123456789"
    assert store.size(root, f"data/{name}") == 10
    assert store.get_ranges(root, f"data/{name}", [(0, 2), (7, 10)]) == [b"01", b"789"]
    local = store.local_path(root, f"data/{name}")
    assert local == tmp_path / "tab le%25#ü" / "data" / name
    assert local.read_bytes() == b"0123456789"
    store.delete(root, f"data/{name}")
    assert store.read_if_present(root, f"data/{name}") is None


def test_a_table_is_text_a_path_a_file_uri_or_an_object_with_a_table_uri(tmp_path):
    folder = tmp_path / "a b%"
    for table in (str(folder), folder, folder.as_uri(), FakeDeltaTable(folder.as_uri()), f"{folder}/"):
        assert store.open_store(table).uri == str(folder)


@pytest.mark.parametrize(
    ("uri", "instead"),
    [
        ("dbfs:/x/y", "/dbfs/… or /Volumes/…"),
        ("dbfs:///x", "/dbfs/… or /Volumes/…"),
        ("hdfs:/x", "a mount that every machine has"),
        ("HDFS://name:8020/x", "a mount that every machine has"),
        ("viewfs:/x", "a mount that every machine has"),
        ("wasbs://c@a.blob.core.windows.net/t", "abfss://container@account"),
        ("s3n://b/t", "s3://"),
    ],
)
def test_a_scheme_of_hadoop_alone_is_rejected_with_what_to_pass_instead(uri, instead):
    with pytest.raises(StoreError, match=f"only Hadoop's file systems open: .*{instead}"):
        store.open_store(uri)


@pytest.mark.parametrize("is_local", [True, False])
def test_files_are_deleted_together_and_missing_ones_are_ignored(tmp_path, is_local):
    root = store.open_store(tmp_path / "t" if is_local else f"memory:///{tmp_path.name}-together")
    names = [f"data/{name}" for name in ODD_NAMES]
    for name in [*names, "kept"]:
        store.put(root, name, b"")
    store.delete_all(root, ["missing", *names])
    store.delete_all(root, [])
    assert store.list_files(root, "") == ["kept"]


def test_a_relative_path_is_below_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert store.open_store("t").local_root == tmp_path / "t"


def test_a_table_cannot_be_a_file_or_below_a_file(tmp_path):
    file = tmp_path / "events.json"
    file.write_bytes(b"{}")
    with pytest.raises(
        StoreError,
        match=r"^cannot open a table at .*\.json: expected a directory, got a file; write it to a table",
    ):
        store.open_store(file)
    with pytest.raises(StoreError, match=r"^cannot open a table at .*/events\.json/t: Not a directory$"):
        store.open_store(file / "t")


def test_opening_a_store_creates_nothing(tmp_path):
    root = store.open_store(tmp_path / "t")
    assert store.list_files(root, "_delta_log") == []
    assert not (tmp_path / "t").exists()


def test_list_files_is_sorted_and_starts_after_a_path(tmp_path):
    root = store.open_store(tmp_path)
    for name in ("c", "a", "b"):
        store.put(root, f"log/{name}", b"")
    store.put(root, "logs/d", b"")
    assert store.list_files(root, "log") == ["log/a", "log/b", "log/c"]
    assert store.list_files(root, "log", after="log/a") == ["log/b", "log/c"]


def test_a_listing_after_a_path_has_the_files_of_folders_on_both_sides_of_it(tmp_path):
    names = ["log/a/z", "log/ab-/y", "log/ab.c", "log/ab/x", "log/ab/y/z", "log/ab0", "log/b/c"]
    root = store.open_store(tmp_path)
    for name in names:
        store.put(root, name, b"")
    assert names == sorted(names)
    for after in [*names, "log/ab", "log/ab/x/y", "log/ab/y", "log/ac", "log/z"]:
        assert store.list_files(root, "log", after=after) == [name for name in names if name > after]


def test_put_if_absent_rejects_and_keeps_an_existing_file(tmp_path):
    root = store.open_store(tmp_path)
    store.put_if_absent(root, "n.json", b"first")
    with raises_at(VersionExistsError, file=f"{tmp_path}/n.json"):
        store.put_if_absent(root, "n.json", b"second")
    assert store.read(root, "n.json") == b"first"


def test_put_replaces_a_file(tmp_path):
    root = store.open_store(tmp_path)
    store.put(root, "x", b"first")
    store.put(root, "x", b"second")
    assert store.read(root, "x") == b"second"


def test_the_error_for_a_missing_file_has_its_name(tmp_path):
    root = store.open_store(tmp_path)
    with raises_at(StoreError, "there is no file", file=f"{tmp_path}/nope.json"):
        store.read(root, "nope.json")
    store.delete(root, "nope.json")


def test_a_path_that_no_store_supports_is_a_store_error(tmp_path):
    with raises_at(StoreError, file="memory:/a//b"):
        store.read(store.open_store("memory:///"), "a//b")


def test_the_error_for_an_unknown_storage_option_has_its_name():
    with pytest.raises(StoreError, match="bogus_option"):
        store.open_store("s3://bucket/table", {"bogus_option": "1"})


def test_the_error_for_an_unknown_scheme_has_the_uri():
    with raises_at(StoreError, table="dbfs://table"):
        store.open_store("dbfs://table")


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("dbfs:/x/t", "the scheme 'dbfs' is not supported"),
        ("dbfs:x", "the scheme 'dbfs' is not supported"),
        ("hdfs:/x/t", "the scheme 'hdfs' is not supported"),
        ("hdfs://host/x", "the scheme 'hdfs' is not supported"),
        ("wasbs://c@a.blob.core.windows.net/x", "the scheme 'wasbs' is not supported"),
        ("my-data.v1+x:t", r"write './my-data.v1\+x:t' for a local folder"),
        ("s3:/bucket/t", "a URI of the scheme 's3' starts with s3://"),
        ("S3:bucket", "a URI of the scheme 's3' starts with s3://"),
        ("gs:/bucket/t", "a URI of the scheme 'gs' starts with gs://"),
        (PurePosixPath("s3://bucket/t"), "pathlib removes a slash"),
        ("memory:/t", "starts with memory://"),
        ("file:t", "a file URI has an absolute path"),
        ("file://host/t", "a file URI has an absolute path"),
    ],
)
def test_an_unsupported_uri_is_not_a_local_path(tmp_path, monkeypatch, location, sentence):
    monkeypatch.chdir(tmp_path)
    data = pa.table({"id": [1]})
    for operate in (
        lambda: store.open_store(location),
        lambda: dv.write_table(location, data),
        lambda: dv.read_table(location),
        lambda: dv.audit_table(location),
    ):
        with pytest.raises(StoreError, match=sentence):
            operate()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("./dbfs:x/t", "dbfs:x/t"),
        ("data/2024-01-01T00:00", "data/2024-01-01T00:00"),
        ("2024-01-01T00:00", "2024-01-01T00:00"),
        ("c:t", "c:t"),
        ("day=1:2", "day=1:2"),
        ("FILE:{0}/a%20b", "a b"),
        ("file:///{0}/x:y", "x:y"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has no colon in the names of files")
def test_a_local_path_may_have_colons(tmp_path, monkeypatch, location, folder):
    monkeypatch.chdir(tmp_path)
    location = location.format(tmp_path).replace("////", "///")
    assert dv.write_table(location, pa.table({"id": [1]})).version == 0
    assert (tmp_path / folder / "_delta_log").is_dir()
    assert dv.read_table(location).to_table()["id"].to_pylist() == [1]


@pytest.mark.parametrize("location", ["s3://bucket/x.json", "s3:/bucket/x.json", "dbfs:/x.json"])
def test_the_error_for_a_remote_uri_requires_a_local_path(tmp_path, monkeypatch, location):
    monkeypatch.chdir(tmp_path)
    one = pa.table({"id": [1]})
    for operate in (
        lambda: dv.compute_stats(location),
        lambda: dv.migrate_legacy(location, "target"),
        lambda: dv.migrate_legacy(tmp_path, location),
        lambda: legacy.read_legacy_file(location),
        lambda: legacy.write_legacy_file(location, one, {}),
        lambda: dv.write_table("t", one, json=dv.JsonOptions(on_invalid="reject", rejects=location)),
    ):
        with pytest.raises(StoreError, match="must be on a local disk, got the URI"):
            operate()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_local_file_whose_name_looks_like_a_uri_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events:2024.json").write_text("1\n")
    assert [batch.num_rows for batch, _ in dv.read_json("events:2024.json").batches()] == [1]
    (file,) = dv.read_json((tmp_path / "events:2024.json").as_uri()).batches()
    assert file[0].num_rows == 1


@pytest.mark.parametrize("path", ["dbfs:/x/a.parquet", "hdfs:/a.parquet", "s3:/bucket/a.parquet"])
def test_a_uri_with_one_slash_in_the_log_is_not_a_file_below_the_table(tmp_path, path):
    local = tmp_path / "t" / path
    local.parent.mkdir(parents=True)
    local.write_bytes(b"x")
    with pytest.raises(StoreError, match="outside the table"):
        store.read(store.open_store(tmp_path / "t"), path)
    allowed = store.open_store(tmp_path / "t", {"allow_paths_outside_table": "true"})
    with pytest.raises(StoreError, match=rf"{path.partition(':')[0]}.*(not supported|starts with)"):
        store.read(allowed, path)


def test_a_file_of_the_log_may_have_a_colon_in_its_name(tmp_path):
    root = store.open_store(tmp_path)
    store.put(root, "ab:c.parquet", b"x")
    assert store.read(root, "ab:c.parquet") == b"x"
    assert (tmp_path / "ab:c.parquet").read_bytes() == b"x"


def test_a_remote_store_has_no_local_path_and_reads_nothing_outside_itself():
    root = store.open_store("memory:///")
    assert store.local_path(root, "a.parquet") is None
    with pytest.raises(StoreError, match="outside the table"):
        store.read(root, "s3://other/a.parquet")


def test_an_absolute_path_below_the_root_is_allowed(tmp_path):
    folder = tmp_path / "t"
    root = store.open_store(folder)
    store.put(root, "a%20b", b"x")
    for path in (f"{folder}/a%20b", f"file:{folder}/a%20b", f"file://{folder}/a%20b"):
        assert store.read(root, path) == b"x"
        assert store.local_path(root, path) == folder / "a%20b"


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    home, current = tmp_path / "home", tmp_path / "current"
    home.mkdir()
    current.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(current)
    assert store.open_store("~/t").local_root == home / "t"
    assert store.open_store(Path("~/t")).local_root == home / "t"
    assert store.open_store("~").local_root == home
    assert store.location_key("~/t") == store.location_key(home / "t")
    assert store.open_store("./~/t").local_root == current / "~" / "t"
    assert store.open_store("~t").local_root == current / "~t"
    (home / "a.ndjson").write_text('{"n": 1}\n')
    dv.write_table("~/t", dv.read_json("~/*.ndjson"))
    assert dv.read_table(home / "t").to_pylist() == [{"value": {"n": 1}}]
    assert list(current.iterdir()) == []


@pytest.mark.parametrize("path", ["../elsewhere", "a/../../elsewhere", "{0}/elsewhere", "file:{0}/elsewhere"])
def test_a_path_outside_the_root_is_rejected_unless_allowed(tmp_path, path):
    (tmp_path / "elsewhere").write_bytes(b"x")
    path = path.format(tmp_path)
    root = store.open_store(tmp_path / "t")
    for operate in (store.read, store.size, store.local_path, store.delete):
        with pytest.raises(StoreError, match="outside the table"):
            operate(root, path)
    with pytest.raises(StoreError, match="outside the table"):
        store.put(root, path, b"y")
    allowed = store.open_store(tmp_path / "t", {"allow_paths_outside_table": "true"})
    assert store.read(allowed, path) == b"x"


def test_a_file_of_another_store_can_be_read_if_allowed(tmp_path):
    options = {"allow_paths_outside_table": "true"}
    store.put(store.open_store("memory://other"), "a b", b"x")
    root = store.open_store(tmp_path, options)
    assert store.read(root, "memory://other/a b") == b"x"
    assert store.local_path(root, "memory://other/a b") is None
    remote = store.open_store("memory://mine/table", options)
    (tmp_path / "local").write_bytes(b"y")
    assert store.read(remote, f"file:{tmp_path}/local") == b"y"
    assert store.local_path(remote, f"file:{tmp_path}/local") == tmp_path / "local"


def _race(folder: str, mark: int, barrier, wins) -> None:
    root = store.open_store(folder)
    for version in range(50):
        barrier.wait(60)
        try:
            store.put_if_absent(root, f"{version}.json", bytes([mark]) * 300_000)
        except VersionExistsError:
            continue
        wins.put((version, mark))


def test_one_of_several_concurrent_writers_creates_the_complete_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier, wins = context.Barrier(3), context.Queue()
    racers = [
        context.Process(target=_race, args=(str(tmp_path), mark, barrier, wins), daemon=True)
        for mark in range(3)
    ]
    for racer in racers:
        racer.start()
    won = dict(wins.get(timeout=60) for _ in range(50))
    for racer in racers:
        racer.join(timeout=60)
    assert sorted(won) == list(range(50))
    assert wins.empty()
    for version, mark in won.items():
        assert (tmp_path / f"{version}.json").read_bytes() == bytes([mark]) * 300_000
    assert sorted(os.listdir(tmp_path)) == sorted(f"{version}.json" for version in range(50))


def _watch(path: str, size: int, torn) -> None:
    seen = 0
    while seen < size:
        if Path(path).exists():
            seen = len(Path(path).read_bytes())
            torn.put(seen)
            return


def test_put_if_absent_is_atomic_for_readers(tmp_path):
    context = multiprocessing.get_context("spawn")
    torn = context.Queue()
    size = 20_000_000
    watcher = context.Process(target=_watch, args=(str(tmp_path / "0.json"), size, torn), daemon=True)
    watcher.start()
    store.put_if_absent(store.open_store(tmp_path), "0.json", b"x" * size)
    assert torn.get(timeout=60) == size
    watcher.join(timeout=60)


def test_a_listing_has_sizes_and_modification_times_in_milliseconds(tmp_path):
    root = store.open_store(tmp_path)
    for number, name in enumerate(("b", "a")):
        store.put(root, f"data/{name}", bytes(number))
        os.utime(tmp_path / "data" / name, ns=(0, 1_234_567_890_987_654_321))
    assert store.list_file_info(root, "data") == [
        StoredFile("data/a", 1, 1_234_567_890_987),
        StoredFile("data/b", 0, 1_234_567_890_987),
    ]


def test_a_file_exists_or_not(tmp_path):
    root = store.open_store(tmp_path)
    store.put(root, "data/a b%", b"")
    assert store.exists(root, "data/a b%")
    assert not store.exists(root, "data/a b")
    assert not store.exists(root, "data")


def test_a_walk_returns_files_of_any_name_and_does_not_follow_links(tmp_path):
    root = tmp_path / "table"
    (root / "a" / "b").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for path in (root / "x\ny", root / "a" / "b" / "part#1", root / "linked", tmp_path / "outside" / "f"):
        path.write_bytes(b"123")
        os.utime(path, ns=(0, 5_999_999))
    (root / "link").symlink_to("linked")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "nowhere").symlink_to("missing")
    (root / os.fsdecode(b"\xff")).write_bytes(b"")
    expected = [StoredFile("a/b/part#1", 3, 5), StoredFile("x\ny", 3, 5)]
    found = store.walk(store.open_store(root))
    assert sorted(found, key=lambda file: file.path) == expected
    store.delete(store.open_store(root), "x\ny")
    assert not (root / "x\ny").exists()
    assert store.walk(store.open_store(root / "nothing")) == []


@pytest.mark.parametrize("copied", [None, 0, 4])
def test_the_start_of_a_file_is_copied_with_another_end(tmp_path, monkeypatch, copied):
    """The system copies the bytes, not at all, or some of them and then fails."""
    # Only Linux has it.
    original = getattr(os, "copy_file_range", None)

    def copy_file_range(source: int, target: int, count: int, offset: int) -> int:
        if offset or not copied or original is None:
            raise OSError("not between these file systems")
        return original(source, target, copied, offset)

    if copied is not None:
        monkeypatch.setattr(os, "copy_file_range", copy_file_range, raising=False)
    root, other = store.open_store(tmp_path / "a"), store.open_store("memory://copies/b")
    store.put(root, "file", b"0123456789")
    for target in (root, other):
        store.copy(root, "file", target, "folder/new", end=8, tail=b"end")
        assert store.read(target, "folder/new") == b"01234567end"
        store.copy(root, "file", target, "folder/whole")
        assert store.read(target, "folder/whole") == b"0123456789"
    assert sorted(path.name for path in (tmp_path / "a" / "folder").iterdir()) == ["new", "whole"]


@pytest.mark.parametrize(("code", "warnings"), [(errno.EROFS, 0), (errno.EACCES, 1)])
def test_a_write_to_a_read_only_file_system_warns_of_no_temporary_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: int,
    warnings: int,
):
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("builtins.open", fail)
    monkeypatch.setattr(os, "unlink", fail)
    with pytest.raises(StoreError):
        store.put_if_absent(store.open_store(tmp_path), "a", b"")
    assert len(caplog.records) == warnings
