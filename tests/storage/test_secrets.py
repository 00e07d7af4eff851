"""Secrets in options and URLs are in no message, cause, context, log record or repr."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import delta_variant as dv
from delta_variant import _redaction
from delta_variant._redaction import redact, redact_location
from delta_variant.storage.options import parse_options
from delta_variant.storage.store import RememberedTable, open_store

SECRET = "SEKRIT0123456789abcdefSEKRIT"
CLOSED = "http://127.0.0.1:1"
FAST = {"max_retries": "0", "allow_http": "true", "timeout": "2s"}
S3 = {**FAST, "aws_endpoint_url": CLOSED, "aws_region": "r"}
KEYS = {"aws_access_key_id": "public-id", "aws_secret_access_key": "other-secret-value"}
ACCOUNT = {**FAST, "azure_storage_account_name": "acc", "azure_storage_endpoint": CLOSED}
KEY_FILE = json.dumps(
    {
        "type": "service_account",
        "private_key_id": SECRET,
        "private_key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n",
        "client_email": f"{SECRET}@project.iam.gserviceaccount.com",
    }
)
CATALOG = {**FAST, "unity_catalog_url": CLOSED}

LOCATIONS: list[tuple[str, Mapping[str, Any]]] = [
    # Options of each store
    ("s3://b/t", {**S3, "aws_access_key_id": SECRET, "aws_secret_access_key": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "aws_session_token": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "aws_secret_acces_key": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "aws_endpoint_url": f"http://user:{SECRET}@127.0.0.1:1"}),
    ("s3://b/t", {**S3, **KEYS, "aws_endpoint_url": f"http://127.0.0.1:1/?token={SECRET}"}),
    ("s3://b/t", {**S3, **KEYS, "proxy_url": f"http://user:{SECRET}@127.0.0.1:1"}),
    ("s3://b/t", {**S3, **KEYS, "timeout": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "max_retries": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "retry_timeout": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "backoff_config.base": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "allow_paths_outside_table": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "aws_profile": SECRET}),
    ("s3://b/t", {**S3, **KEYS, "conditional_put": SECRET}),
    ("az://c/t", {**ACCOUNT, "azure_storage_account_key": SECRET}),
    ("az://c/t", {**ACCOUNT, "azure_storage_sas_token": f"sv=2021&sig={SECRET}"}),
    ("az://c/t", {**ACCOUNT, "azure_storage_sas_token": SECRET}),
    ("az://c/t", {**ACCOUNT, "azure_storage_token": SECRET}),
    ("az://c/t", {**ACCOUNT, "azure_client_secret": SECRET, "azure_client_id": "i", "azure_tenant_id": "t"}),
    ("gs://b/t", {**FAST, "google_service_account": KEY_FILE}),
    ("gs://b/t", {**FAST, "google_service_account": SECRET}),
    ("gs://b/t", {**FAST, "google_service_account_key": KEY_FILE}),
    ("gs://b/t", {**FAST, "google_service_account_key": SECRET}),
    # Catalogs
    ("uc://a.b.c", {**CATALOG, "unity_access_token": SECRET}),
    ("uc://a.b.c", {**CATALOG, "unity_access_token": f"{SECRET}\n"}),
    ("uc://a.b.c", {**CATALOG, "unity_access_token": f"{SECRET}\r\nX: y"}),
    ("uc://a.b.c", {**CATALOG, "unity_access_token": f"{SECRET}é"}),
    ("uc://a.b.c", {**CATALOG, "unity_access_token": f"{SECRET}🎈"}),
    ("uc://a.b.c", {"unity_catalog_url": f"https://user:{SECRET}@127.0.0.1:1", "max_retries": "0"}),
    ("uc://a.b.c", {"unity_catalog_url": f"https://127.0.0.1:1?token={SECRET}", "max_retries": "0"}),
    ("uc://a.b.c", {"unity_catalog_url": f"ftp://{SECRET}@127.0.0.1:1", "max_retries": "0"}),
    (f"uc://a.b.c?token={SECRET}", CATALOG),
    # Options of a wrong shape
    *(
        ("s3://b/t", options)
        for options in (
            [("aws_secret_access_key", SECRET)],
            f"aws_secret_access_key={SECRET}",
            {SECRET},
            {b"aws_secret_access_key": SECRET},
            {SECRET.encode(): "x"},
            {"aws_secret_access_key": SECRET.encode()},
            {"aws_secret_access_key": [SECRET]},
            {"aws_secret_access_key": f"{SECRET}\ud800"},
        )
    ),
    # URLs
    *(
        (uri, FAST)
        for uri in (
            f"https://acc.blob.core.windows.net/c/t?sv=1&sig={SECRET}",
            f"abfss://c@acc.dfs.core.windows.net/t?sig={SECRET}",
            f"wasbs://c@acc.blob.core.windows.net/t?sig={SECRET}",
            f"s3://b/t?X-Amz-Signature={SECRET}",
            f"s3://b/t?{SECRET}",
            f"s3://b/t#{SECRET}",
            f"s3://key:{SECRET}@b/t",
            f"s3a://key:{SECRET}/with/slashes@b/t",
            f"https://user:{SECRET}@127.0.0.1:1/t",
            f"https://{SECRET}@127.0.0.1:1/t",
            f"http://user:{SECRET}@127.0.0.1:1/t",
            f"hdfs://user:{SECRET}@host/t",
            f"nothing://user:{SECRET}@host/t",
            f"memory://user:{SECRET}@host/t",
            f"gs://b/t?X-Goog-Signature={SECRET}",
        )
    ),
]
CALLS: dict[str, Callable[[str, Any], Any]] = {
    "load": lambda uri, options: dv.load_snapshot(dv.Table(uri, options)),
    "write": lambda uri, options: dv.write_table(dv.Table(uri, options), [{"id": 1}]),
    "handle": lambda uri, options: dv.Table(uri, storage_options=options).scan().count(),
}


@pytest.fixture(autouse=True)
def no_remembered_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each case mask only its own secrets."""
    monkeypatch.setattr(_redaction, "_secrets", {})
    monkeypatch.setattr(_redaction, "_pattern", None)


def texts_of(error: BaseException | None) -> list[str]:
    """Return the texts of an error, its causes and contexts, also of those that a traceback suppresses."""
    if error is None:
        return []
    own = [str(error), repr(error), *traceback.format_exception(error), repr(vars(error))]
    return [*own, *texts_of(error.__cause__), *texts_of(error.__context__)]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("number", range(len(LOCATIONS)))
def test_an_error_has_no_secret(caplog, call, number):
    uri, options = LOCATIONS[number]
    caplog.set_level(logging.DEBUG)
    with pytest.raises((dv.DeltaVariantError, ValueError)) as caught:
        CALLS[call](uri, options)
    assert not any(SECRET in text for text in texts_of(caught.value))
    assert SECRET not in caplog.text
    assert SECRET not in repr(pickle.loads(pickle.dumps(caught.value)))


@pytest.mark.parametrize("number", range(len(LOCATIONS)))
def test_a_handle_shows_no_secret(number):
    uri, options = LOCATIONS[number]
    assert SECRET not in repr(dv.Table(uri, storage_options=options))
    assert SECRET not in repr(RememberedTable("s3://b/t", options))


def test_parsed_options_and_stores_show_no_secret():
    options = {**S3, **KEYS, "aws_session_token": SECRET, "proxy_url": f"http://u:{SECRET}@h:1"}
    options |= {"unity_access_token": SECRET, "allow_paths_outside_table": "true"}
    assert SECRET not in repr(parse_options(options))
    assert SECRET not in repr(open_store("s3://b/t", options))


def test_secrets_of_the_environment_are_masked(monkeypatch):
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", KEY_FILE)
    monkeypatch.setenv("UNITY_ACCESS_TOKEN", f"{SECRET}\x01")
    for uri, options in (("gs://b/t", FAST), ("uc://a.b.c", CATALOG)):
        with pytest.raises(dv.DeltaVariantError) as caught:
            dv.load_snapshot(dv.Table(uri, options))
        assert not any(SECRET in text for text in texts_of(caught.value))


@pytest.mark.parametrize(
    ("options", "uri", "shown"),
    [
        ({"max_retries": "x"}, "s3://b/t", "max_retries=x: invalid value"),
        ({"aws_region": "eu-west-1", "aws_profile": "me"}, "s3://b/t", "aws_profile=me"),
        ({"google_service_account": "/no/such/key.json"}, "gs://b/t", "/no/such/key.json"),
        ({**S3, **KEYS}, "s3://bucket-name/folder", "s3://bucket-name/folder"),
        ({**S3, **KEYS, "allow_http": "false"}, "s3://b/t", "set AWS_ALLOW_HTTP=true in the"),
        ({**ACCOUNT, "azure_skip_signature": "true", "allow_http": "false"}, "az://c/t", "set AZURE_ALLOW"),
    ],
)
def test_an_error_keeps_what_is_not_secret(options, uri, shown):
    with pytest.raises(dv.StoreError, match=shown):
        dv.load_snapshot(dv.Table(uri, {**FAST, **options}))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("no URL: a@b, c?d=e", "no URL: a@b, c?d=e"),
        ("abfss://c@acc.dfs.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t"),
        ("GET http://u:p@h/b?list-type=2&prefix=a", "GET http://***@h/b?list-type=2&prefix=a"),
        ("https://h/c?sv=1&sig=abc%3D&se=2", "https://h/c?sv=1&sig=***&se=2"),
        ("https://h/c?X-Amz-Security-Token=a", "https://h/c?X-Amz-Security-Token=***"),
    ],
)
def test_a_url_in_a_text_keeps_what_is_not_secret(text, masked):
    assert redact(text) == masked


def test_a_location_keeps_its_path():
    assert redact_location("az://c/t?sv=1&sig=2") == "az://c/t?***"
    assert redact_location("data/what?#1") == "data/what?#1"
