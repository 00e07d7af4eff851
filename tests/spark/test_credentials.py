"""Credentials that a session has for Hadoop's file systems open tables, unless a call has its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from faults.buckets import Bucket, new_bucket, options_for, s3_server
from pyspark.sql import SparkSession
from spark.tables import on_spark, write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.spark.locations import add_options, hadoop_settings
from delta_variant.storage.store import list_files, open_store

KEYS = {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}
AS_OPTIONS = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
PROVIDER = "fs.s3a.aws.credentials.provider"
HADOOP = "org.apache.hadoop.fs.s3a"
AZURE = "abfss://c@acc.dfs.core.windows.net/t"
HOST = "acc.dfs.core.windows.net"
OAUTH = "fs.azure.account.oauth2"

CASES: dict[str, tuple[str, Mapping[str, str], Mapping[str, str] | None]] = {
    "keys": ("s3://b/t", KEYS, AS_OPTIONS),
    "a key alone": ("s3://b/t", {"fs.s3a.access.key": "k"}, None),
    "a session token": (
        "s3a://b/t",
        {**KEYS, "fs.s3a.session.token": "t"},
        {**AS_OPTIONS, "aws_session_token": "t"},
    ),
    "no token with the simple provider": (
        "s3://b/t",
        {**KEYS, "fs.s3a.session.token": "t", PROVIDER: f"{HADOOP}.SimpleAWSCredentialsProvider"},
        AS_OPTIONS,
    ),
    "keys of a bucket": (
        "s3://b/t",
        {**KEYS, "fs.s3a.bucket.b.access.key": "kb", "fs.s3a.bucket.other.secret.key": "so"},
        {**AS_OPTIONS, "aws_access_key_id": "kb"},
    ),
    "an instance profile": (
        "s3://b/t",
        {**KEYS, PROVIDER: f"{HADOOP}.auth.IAMInstanceCredentialsProvider", "fs.s3a.endpoint.region": "r"},
        {"aws_region": "r"},
    ),
    "anonymous": (
        "s3://b/t",
        {**KEYS, PROVIDER: f"{HADOOP}.AnonymousAWSCredentialsProvider"},
        {"aws_skip_signature": "true"},
    ),
    "an endpoint": (
        "s3://b/t",
        {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"},
        {"aws_endpoint_url": "http://minio:9000", "aws_allow_http": "true"},
    ),
    "an endpoint with TLS": (
        "s3://b/t",
        {"fs.s3a.endpoint": "minio", "fs.s3a.path.style.access": "true"},
        {"aws_endpoint_url": "https://minio", "aws_virtual_hosted_style_request": "false"},
    ),
    "an endpoint of AWS": (
        "s3://b/t",
        {"fs.s3a.endpoint": "s3.eu-north-1.amazonaws.com"},
        {"aws_region": "eu-north-1"},
    ),
    "the central endpoint": ("s3://b/t", {"fs.s3a.endpoint": "https://s3.amazonaws.com"}, None),
    "encryption": (
        "s3://b/t",
        {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn"},
        {"aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": "arn"},
    ),
    "a key of an account": (
        AZURE,
        {f"fs.azure.account.key.{HOST}": "a2V5", "fs.azure.account.key.other.dfs.core.windows.net": "no"},
        {"azure_storage_account_key": "a2V5"},
    ),
    "a token of a container": (
        AZURE,
        {"fs.azure.sas.c.acc.blob.core.windows.net": "sig=1"},
        {"azure_storage_sas_token": "sig=1"},
    ),
    "an application of Azure": (
        AZURE,
        {
            f"fs.azure.account.auth.type.{HOST}": "OAuth",
            f"fs.azure.account.key.{HOST}": "a2V5",
            f"{OAUTH}.client.id.{HOST}": "i",
            f"{OAUTH}.client.secret.{HOST}": "s",
            f"{OAUTH}.client.endpoint.{HOST}": "https://login.microsoftonline.com/tenant/oauth2/token",
        },
        {"azure_client_id": "i", "azure_client_secret": "s", "azure_tenant_id": "tenant"},
    ),
    "a URI without an account": ("az://c/t", {f"fs.azure.account.key.{HOST}": "a2V5"}, None),
    "anonymous on Google": (
        "gs://b/t",
        {"fs.gs.auth.type": "UNAUTHENTICATED"},
        {"google_skip_signature": "true"},
    ),
    "a file of Google": (
        "gs://b/t",
        {"google.cloud.auth.service.account.json.keyfile": "/key.json"},
        {"google_service_account": "/key.json"},
    ),
    "a machine of Google": (
        "gs://b/t",
        {"fs.gs.auth.type": "COMPUTE_ENGINE", "fs.gs.auth.service.account.json.keyfile": "/key.json"},
        None,
    ),
    "a local path": ("/t", KEYS, None),
}


@pytest.mark.parametrize("case", CASES)
def test_settings_of_hadoop_become_storage_options(case: str):
    uri, settings, expected = CASES[case]
    found = add_options(uri, None, settings)
    assert found == expected
    if found and not case.endswith("of Google"):
        # The store knows the options.
        open_store(uri, found)


def test_a_key_of_google_becomes_the_text_of_its_file():
    names = {"email": "a@b", "private.key.id": "1", "private.key": "pem"}
    settings = {f"fs.gs.auth.service.account.{name}": value for name, value in names.items()}
    found = add_options("gs://b/t", None, settings)
    assert json.loads((found or {})["google_service_account_key"]) == {
        "type": "service_account",
        "client_email": "a@b",
        "private_key_id": "1",
        "private_key": "pem",
    }


def test_options_of_a_call_win():
    own = {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "o"}
    assert add_options("s3://b/t", own, {**KEYS, "fs.s3a.endpoint": "minio"}) == own
    assert add_options("s3://b/t", {"timeout": "2m"}, KEYS) == {**AS_OPTIONS, "timeout": "2m"}


@pytest.mark.classic("core-site.xml and the configuration of the JVM")
def test_settings_of_the_jvm_and_of_keystores_are_read(spark: SparkSession, tmp_path: Path):
    context: Any = spark.sparkContext
    configuration, jvm = context._jsc.hadoopConfiguration(), context._jvm
    path = "hadoop.security.credential.provider.path"
    configuration.set("fs.s3a.access.key", "k")
    configuration.set(path, f"localjceks://file{tmp_path}/keys.jceks")
    try:
        (provider,) = jvm.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(
            configuration
        )
        secret = context._gateway.new_array(jvm.char, 1)
        secret[0] = "s"
        provider.createCredentialEntry("fs.s3a.secret.key", secret)
        provider.flush()
        spark.conf.set("fs.s3a.session.token", "t")
        found = add_options("s3://b/t", None, hadoop_settings(spark))
    finally:
        for name in ("fs.s3a.access.key", path):
            configuration.unset(name)
        spark.conf.unset("fs.s3a.session.token")
    assert found == {**AS_OPTIONS, "aws_session_token": "t"}
    # Hadoop's own defaults are not options.
    assert add_options("s3://b/t", None, hadoop_settings(spark)) is None


@pytest.fixture
def session_bucket(spark: SparkSession) -> Iterator[Bucket]:
    """Return a bucket whose keys and endpoint the session has, and nothing else."""
    with s3_server() as endpoint:
        settings = {
            "spark.hadoop.fs.s3a.access.key": "of the start",
            "fs.s3a.access.key": "testing",
            "fs.s3a.secret.key": "testing",
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
        }
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield new_bucket(endpoint)
        for name in settings:
            spark.conf.unset(name)


@pytest.mark.timeout(600)
def test_credentials_of_the_session_reach_the_driver_and_the_executors(
    spark: SparkSession, session_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    assert hadoop_settings(spark)["fs.s3a.access.key"] == "testing"
    table, options = session_bucket.table(), options_for(session_bucket.endpoint)
    df = spark.range(0, 10, 1, 2).selectExpr("id", "'{}' AS event")
    assert write_frame(table, df, variant_columns=["event"]).rows == 10
    assert dvs.read_table(spark, table).count() == 10
    dvs.register(spark)
    df.write.format("delta_variant").mode("append").option("variant_columns", "event").save(table)
    assert spark.read.format("delta_variant").load(table).count() == 20
    assert on_spark(spark, table).optimize().version == 2
    assert on_spark(spark, table).audit().is_clean
    assert dv.read_table(dv.Table(table, options)).count() == 20
    assert on_spark(spark, table).delete("id < 5").version == 3
    assert on_spark(spark, table).restore(2).version == 4
    unused = on_spark(spark, table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert len(unused.files) == 5
    assert dv.read_table(dv.Table(table, options)).count() == 20
    # Records of attempts are deleted with the API of many files.
    assert list_files(open_store(table, options), "_delta_variant") == []
