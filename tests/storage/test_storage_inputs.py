"""Input files in object stores, and errors of a store without credentials."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.exceptions import GenericError
from support.intercepted_store import intercept

import delta_variant as dv
from delta_variant.errors import SourceError, SourceNotFoundError, StoreError
from delta_variant.storage import inputs
from delta_variant.storage.inputs import list_inputs
from delta_variant.storage.store import Store, open_store, put


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Store:
    """Return a store in memory that every URI of an input opens."""
    store = open_store(f"memory://{abs(hash(request.node.name))}")
    monkeypatch.setattr(inputs, "open_store", lambda uri, options: store)
    for name in ("in/a.json", "in/day=1/b.json", "in/_c.json", "in/d.txt", "e.json", "q#.json"):
        put(store, name, name.encode())
    return store


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("s3://b/in/", ["in/a.json", "in/day=1/b.json"]),
        ("s3://b/*.json", ["e.json", "q#.json"]),
        ("s3://b/in/**/*.json", ["in/_c.json", "in/a.json", "in/day=1/b.json"]),
        ("s3://b/in/a*", ["in/a.json"]),
        ("s3://b/q?.json", ["q#.json"]),
        ("s3://b/q#.json", ["q#.json"]),
    ],
)
def test_uris_name_files_folders_and_globs(bucket: Store, text: str, names: list[str]):
    files = list_inputs([text], [".json"], None)
    assert [file.key for file in files] == names
    assert [file.open().read().decode() for file in files] == names
    assert files[0].name.startswith(text.partition("//")[0])


def test_a_url_is_one_file_whose_name_has_no_credentials():
    (file,) = list_inputs(["https://user:word@host:81/in/a%20b.json?sig=secret#x"], [".json"], None)
    assert (file.name, file.path) == ("https://host:81/in/a%20b.json", "a b.json")


def test_a_remote_file_can_be_read_at_any_position(bucket: Store):
    put(bucket, "long", bytes(range(256)) * 100)
    (file,) = list_inputs(["s3://b/long"], [".json"], None)
    with file.open() as content:
        assert content.seek(-3, 2) == 25_597
        assert content.read() == b"\xfd\xfe\xff"
        content.seek(256)
        assert content.read(2) == b"\x00\x01"
    assert file.size == 25_600


@pytest.mark.parametrize("text", ["s3://b/absent/", "s3://b/x*.json"])
def test_a_uri_without_files_is_an_error(bucket: Store, text: str):
    with pytest.raises(SourceNotFoundError) as raised:
        list_inputs([text], [".json"], None)
    assert text in str(raised.value)


def test_a_folder_with_a_delta_table_is_not_read_as_files(bucket: Store, tmp_path: Path):
    put(bucket, "in/table/_delta_log/0.json", b"")
    dv.write_table(tmp_path / "t", [{"id": 1}])
    for text, suffix in (
        ("s3://b/in/", ".json"),
        (str(tmp_path), ".parquet"),
        (str(tmp_path / "t"), ".parquet"),
    ):
        with pytest.raises(SourceError, match="Delta table") as raised:
            list_inputs([text], [suffix], None)
        assert raised.value.file == text


def test_a_store_without_credentials_names_the_variables(tmp_path: Path):
    def fail(call: str, key: str) -> None:
        raise GenericError("Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token")

    with pytest.raises(StoreError, match="there are no credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID"):
        dv.load_snapshot(intercept(tmp_path, before=fail))
