"""The keys of storage_options, those of deltalake, for S3, Azure and GCS, without a network."""

from __future__ import annotations

from datetime import timedelta

import pytest

from delta_variant.errors import StoreError
from delta_variant.storage import store
from delta_variant.storage.options import parse_options

S3 = {
    "AWS_ACCESS_KEY_ID": "id",
    "aws_secret_access_key": "secret",
    "Aws_Session_Token": "token",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "region": "eu-central-1",
    "AWS_ALLOW_HTTP": "true",
    "timeout": "90s",
    "connect_timeout": "2s",
    "proxy_url": "http://127.0.0.1:2",
    "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    "AWS_CONDITIONAL_PUT": "etag",
    "copy_if_not_exists": "multipart",
    "OBJECT_STORE_CONCURRENCY_LIMIT": "8",
    "max_retries": "4",
    "retry_timeout": "1m 30s",
    "backoff_config.init_backoff": "10ms",
    "backoff_config.max_backoff": "2s",
    "backoff_config.base": "3.0",
}


def test_the_options_of_s3_go_to_the_store_the_client_and_the_retries():
    objects = store.open_store("s3://bucket/a/table", S3).objects.store
    assert repr(objects) == 'S3Store(bucket="bucket", prefix="a/table")'
    assert objects.config == {
        "access_key_id": "id",
        "secret_access_key": "secret",
        "session_token": "token",
        "endpoint": "http://127.0.0.1:1",
        "region": "eu-central-1",
        "conditional_put": "etag",
        "copy_if_not_exists": "multipart",
        "bucket": "bucket",
    }
    assert objects.client_options == {
        "allow_http": "true",
        "timeout": "90s",
        "connect_timeout": "2s",
        "proxy_url": "http://127.0.0.1:2",
    }
    assert objects.retry_config == {
        "backoff": {
            "init_backoff": timedelta(milliseconds=10),
            "max_backoff": timedelta(seconds=2),
            "base": 3.0,
        },
        "max_retries": 4,
        "retry_timeout": timedelta(seconds=90),
    }


@pytest.mark.parametrize(
    ("uri", "options", "expected"),
    [
        ("s3a://b/t", {}, 'S3Store(bucket="b", prefix="t")'),
        ("s3://b/a%20b/ü/", {}, 'S3Store(bucket="b", prefix="a b/ü")'),
        ("s3://b", {}, 'S3Store(bucket="b")'),
        ("gs://b/t", {"GOOGLE_SKIP_SIGNATURE": "true"}, 'GCSStore(bucket="b", prefix="t")'),
        (
            "az://c/t",
            {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5"},
            'AzureStore(container_name="c", account_name="acc", prefix="t")',
        ),
        (
            "abfss://c@acc.dfs.core.windows.net/a/t",
            {"account_key": "a2V5", "azure_allow_http": "true"},
            'AzureStore(container_name="c", account_name="acc", prefix="a/t")',
        ),
        (
            "azure://c/t",
            {"account_name": "acc", "sas_token": "sv=1&sig=2", "timeout": "9s"},
            'AzureStore(container_name="c", account_name="acc", prefix="t")',
        ),
        (
            "https://acc.blob.core.windows.net/c/t",
            {"bearer_token": "x"},
            'AzureStore(container_name="c", account_name="acc", prefix="t")',
        ),
    ],
)
def test_uris_of_every_store_are_parsed_as_by_deltalake(uri, options, expected):
    assert repr(store.open_store(uri, options).objects.store) == expected


def test_a_service_account_of_gcs_is_read_from_its_file(tmp_path):
    with pytest.raises(StoreError, match=r"gs://b/t.*nowhere\.json"):
        store.open_store("gs://b/t", {"GOOGLE_SERVICE_ACCOUNT": str(tmp_path / "nowhere.json")})


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("AWS_S3_LOCKING_PROVIDER", "dynamodb", "a lock in DynamoDB"),
        ("DELTA_DYNAMO_TABLE_NAME", "t", "a lock in DynamoDB"),
        ("aws_iam_role_arn", "arn:aws:iam::1:role/x", "a profile with role_arn"),
        ("aws_conditional_put", "disabled", "conditional puts"),
        ("conditional_put", "dynamo:t", "conditional puts"),
        ("max_retries", "many", "invalid value"),
        ("retry_timeout", "soon", "invalid value"),
        ("retry_timeout", "3 fortnights", "invalid value"),
        ("allow_paths_outside_table", "perhaps", "invalid value"),
        ("bogus", "1", "bogus"),
        ("timeout", "soon", "soon"),
    ],
)
def test_the_error_for_an_unsupported_option_has_its_name(key, value, reason):
    with pytest.raises(StoreError, match=f"{key}={value}.*{reason}|{reason}"):
        store.open_store("s3://b/t", {key: value})


@pytest.mark.parametrize("uri", ["s3://b/t?x", "s3://b/a#b"])
def test_a_uri_with_a_query_or_fragment_is_rejected(uri):
    with pytest.raises(StoreError, match="ends the path of a URI"):
        store.open_store(uri)


def test_options_of_deltalake_itself_have_no_effect():
    assert parse_options({"worker_threads": "8", "ALLOW_UNSAFE_RENAME": "true"}) == parse_options({})


def test_addressing_style_and_idle_timeout_go_to_the_store_and_the_client():
    sorted_ = parse_options({"AWS_S3_ADDRESSING_STYLE": "virtual", "AWS_S3_POOL_IDLE_TIMEOUT_SECONDS": "15"})
    assert sorted_.store == {"aws_virtual_hosted_style_request": "true"}
    assert sorted_.client == {"pool_idle_timeout": "15s"}


def test_a_table_in_memory_exists_until_the_process_ends():
    store.put(store.open_store("memory:///a/t"), "x", b"1")
    assert store.read(store.open_store("memory:///a/t/"), "x") == b"1"
    assert store.read_if_present(store.open_store("memory:///b/t"), "x") is None
