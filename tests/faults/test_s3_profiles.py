"""Tables on an S3 server by a profile of the AWS command line, and by the options of the guide for MinIO."""

from __future__ import annotations

import pickle
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from buckets import new_bucket, s3_server
from support.documents import Page

import delta_variant as dv
from delta_variant.storage.store import open_store

QUICK = {"allow_http": "true", "max_retries": "0", "timeout": "5s"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    """Return a folder for the files of profiles, in an environment without other credentials."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


def write_profile(home: Path, endpoint: str) -> None:
    (home / "config").write_text(f"[profile work]\nregion = eu-west-3\nendpoint_url = {endpoint}\n")
    (home / "credentials").write_text(
        "[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = secret\n"
    )


@pytest.fixture
def signatures() -> Iterator[tuple[str, list[str]]]:
    """Yield the endpoint of a server without any file, and the signatures of its requests."""
    found: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.append(self.headers["Authorization"])
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", found
        server.shutdown()


@pytest.mark.parametrize("by_option", [True, False])
def test_requests_are_signed_with_the_keys_and_the_region_of_the_profile(
    home, signatures, monkeypatch, by_option
):
    endpoint, found = signatures
    write_profile(home, endpoint)
    if not by_option:
        monkeypatch.setenv("AWS_PROFILE", "work")
    with pytest.raises(dv.DeltaVariantError):
        dv.load_snapshot(
            dv.Table("s3://bucket/table", {**QUICK, **({"AWS_PROFILE": "work"} if by_option else {})})
        )
    assert found
    assert all("Credential=AKIAWORK/" in each and "/eu-west-3/s3/" in each for each in found)


def test_a_region_that_is_passed_comes_before_that_of_the_profile(home, signatures):
    endpoint, found = signatures
    write_profile(home, endpoint)
    options = {**QUICK, "aws_profile": "work", "aws_region": "us-east-2"}
    with pytest.raises(dv.DeltaVariantError):
        dv.load_snapshot(dv.Table("s3://bucket/table", options))
    assert all("/us-east-2/s3/" in each for each in found)


def test_a_profile_that_does_not_exist_is_an_error(home):
    write_profile(home, "http://127.0.0.1:1")
    with pytest.raises(dv.StoreError, match=r"aws_profile=home because .* no such profile"):
        dv.load_snapshot(dv.Table("s3://bucket/table", {"aws_profile": "home"}))


def test_a_profile_without_credentials_is_an_error(home, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (home / "config").write_text("[profile work]\nregion = eu-west-3\n")
    with pytest.raises(dv.StoreError, match="because it has no credentials; run `aws configure`"):
        dv.load_snapshot(dv.Table("s3://bucket/table", {"aws_profile": "work"}))


def test_a_table_is_written_and_read_by_a_profile_also_in_another_process(home, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with s3_server() as endpoint:
        write_profile(home, endpoint)
        table = dv.Table(new_bucket(endpoint).table())
        table.append([{"id": 1}])
        assert table.scan().to_pylist() == [{"id": 1}]
        store = pickle.loads(pickle.dumps(open_store(table)))
        assert dv.load_snapshot(store).version == 0


def test_the_example_for_minio_writes_a_table(home):
    (block,) = (each for each in Page("docs/guides/object-stores.md").blocks("text") if ":9000" in each.code)
    with s3_server() as endpoint:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket", method="PUT"), timeout=30).close()
        names = {"dv": dv}
        exec(block.code.replace("http://localhost:9000", endpoint), names)
        assert names["events"].scan().to_pylist() == [{"event": {"id": 1}}]
