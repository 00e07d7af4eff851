"""Storage options from the settings of Hadoop's file systems in a session.

A session has a setting as `spark.hadoop.fs.s3a.access.key`, or as `fs.s3a.access.key` if it was set at run
time. The configuration object of the JVM also has those of core-site.xml, and refers to keystores. A client
of Spark Connect does not see it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from ..storage.options import parse_options
from ..storage.store import TableLocation, storage_options_of, table_uri

HadoopSettings: TypeAlias = Mapping[str, str]
"""The settings of Hadoop's file systems by their names without the prefix `spark.hadoop.`."""

PREFIX = "spark.hadoop."
FILE_SYSTEMS = ("fs.s3a.", "fs.azure.", "fs.gs.", "google.cloud.auth.")
REDACTED = "redacted)"
KEYSTORES = "hadoop.security.credential.provider.path"


def session_options(
    spark: SparkSession, table: TableLocation, storage_options: Mapping[str, str] | None = None
) -> Mapping[str, str] | None:
    """Return the storage options of a call, with those of its session; see `add_options`."""
    own = storage_options_of(table) if storage_options is None else storage_options
    return own if _source(table_uri(table)) is None else add_options(table, own, hadoop_settings(spark))


def add_options(
    table: TableLocation, own: Mapping[str, str] | None, settings: HadoopSettings
) -> Mapping[str, str] | None:
    """Return the options of a call, with those of settings unless the call configures the store itself.

    Options of the HTTP client and of retries do not configure the store.
    """
    uri = table_uri(table)
    source = _source(uri)
    if source is None or parse_options(own or {}).store:
        return own
    return {**source(uri, settings), **(own or {})} or None


def hadoop_settings(spark: SparkSession) -> HadoopSettings:
    """Return the settings of Hadoop's file systems in a session."""
    found = {name: text.strip() for name, text in spark.conf.getAll.items() if not text.endswith(REDACTED)}
    at_start = {name.removeprefix(PREFIX): text for name, text in found.items() if name.startswith(PREFIX)}
    # Those of the start are in the configuration object, too, where a program may have changed them.
    settings = at_start if is_remote() else {**at_start, **_jvm_settings(spark)}
    return {name: text for name, text in {**settings, **found}.items() if name.startswith(FILE_SYSTEMS)}


def _jvm_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of the JVM's configuration object, and those in the keystores that it names."""
    context: Any = spark.sparkContext
    configuration, jvm = context._jsc.hadoopConfiguration(), context._jvm
    # One call for the settings of a prefix: a call for each of them would take longer.
    to_json = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString
    settings: dict[str, str] = {}
    for prefix in ("fs.", "google."):
        found = json.loads(to_json(configuration.getPropsWithPrefix(prefix)))
        settings |= {f"{prefix}{name}": value.strip() for name, value in found.items()}
    if configuration.get(KEYSTORES):
        providers = jvm.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(configuration)
        for name in {name for provider in providers for name in provider.getAliases()}:
            settings[name] = "".join(configuration.getPassword(name))
    return settings


def _s3_options(uri: str, settings: HadoopSettings) -> dict[str, str]:
    bucket = urlsplit(uri).netloc

    def get(name: str) -> str:
        return settings.get(f"fs.s3a.bucket.{bucket}.{name}") or settings.get(f"fs.s3a.{name}", "")

    options = {
        **_s3_credentials(get),
        **_s3_endpoint(get("endpoint"), is_encrypted=get("connection.ssl.enabled") != "false"),
        **_s3_encryption(get),
    }
    if get("endpoint.region"):
        options["aws_region"] = get("endpoint.region")
    if get("path.style.access") == "true":
        options["aws_virtual_hosted_style_request"] = "false"
    return options


def _s3_credentials(get: Callable[[str], str]) -> dict[str, str]:
    """Return the keys, or none if Hadoop uses those of the machine, which the store finds by itself."""
    providers = [name.strip().rsplit(".", 1)[-1] for name in get("aws.credentials.provider").split(",")]
    providers = [name for name in providers if name]
    if providers == ["AnonymousAWSCredentialsProvider"]:
        return {"aws_skip_signature": "true"}
    is_temporary = not providers or "TemporaryAWSCredentialsProvider" in providers
    if not is_temporary and "SimpleAWSCredentialsProvider" not in providers:
        return {}
    keys = {"aws_access_key_id": get("access.key"), "aws_secret_access_key": get("secret.key")}
    if not all(keys.values()):
        return {}
    token = get("session.token") if is_temporary else ""
    return {**keys, "aws_session_token": token} if token else keys


_AWS_ENDPOINT = re.compile(r"(?:https?://)?s3(?:[.-](?P<region>[a-z0-9-]+))?\.amazonaws\.com/?")


def _s3_endpoint(endpoint: str, *, is_encrypted: bool) -> dict[str, str]:
    if not endpoint:
        return {}
    if found := _AWS_ENDPOINT.fullmatch(endpoint):
        return {"aws_region": found["region"]} if found["region"] else {}
    scheme = "https" if is_encrypted else "http"
    url = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return {"aws_endpoint_url": url, **({"aws_allow_http": "true"} if url.startswith("http:") else {})}


_S3_ENCRYPTION = {"AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse", "SSE-C": "sse-c"}


def _s3_encryption(get: Callable[[str], str]) -> dict[str, str]:
    algorithm = get("encryption.algorithm") or get("server-side-encryption-algorithm")
    key = get("encryption.key") or get("server-side-encryption.key")
    if algorithm not in _S3_ENCRYPTION:
        return {}
    name = "aws_sse_customer_key_base64" if algorithm == "SSE-C" else "aws_sse_kms_key_id"
    return {"aws_server_side_encryption": _S3_ENCRYPTION[algorithm], **({name: key} if key else {})}


def _azure_options(uri: str, settings: HadoopSettings) -> dict[str, str]:
    """Return the options for a URI that names the account, as in `abfss://container@account.dfs…/table`."""
    container, at, host = urlsplit(uri).netloc.rpartition("@")
    if not at:
        return {}
    blob = host.replace(".dfs.", ".blob.")

    def get(name: str) -> str:
        return settings.get(f"{name}.{host}") or settings.get(f"{name}.{blob}") or settings.get(name, "")

    kind = get("fs.azure.account.auth.type")
    if kind == "OAuth":
        return _azure_identity(get)
    key = get("fs.azure.account.key") if kind in ("", "SharedKey") else ""
    token = get(f"fs.azure.sas.{container}") or get("fs.azure.sas.fixed.token")
    if key:
        return {"azure_storage_account_key": key}
    return {"azure_storage_sas_token": token} if token and kind in ("", "SAS") else {}


def _azure_identity(get: Callable[[str], str]) -> dict[str, str]:
    endpoint = get("fs.azure.account.oauth2.client.endpoint")
    tenant = get("fs.azure.account.oauth2.msi.tenant") or urlsplit(endpoint).path.strip("/").split("/")[0]
    options = {
        "azure_client_id": get("fs.azure.account.oauth2.client.id"),
        "azure_client_secret": get("fs.azure.account.oauth2.client.secret"),
        "azure_tenant_id": tenant,
        "azure_federated_token_file": get("fs.azure.account.oauth2.token.file"),
    }
    return {name: value for name, value in options.items() if value}


def _google_options(uri: str, settings: HadoopSettings) -> dict[str, str]:
    def get(name: str) -> str:
        return settings.get(f"fs.gs.auth.{name}") or settings.get(f"google.cloud.auth.{name}", "")

    kind = get("type")
    if kind == "UNAUTHENTICATED":
        return {"google_skip_signature": "true"}
    if kind not in ("", "SERVICE_ACCOUNT_JSON_KEYFILE"):
        return {}
    if path := get("service.account.json.keyfile"):
        return {"google_service_account": path}
    names = {"client_email": "email", "private_key_id": "private.key.id", "private_key": "private.key"}
    key = {field: get(f"service.account.{name}") for field, name in names.items()}
    if not all(key.values()):
        return {}
    return {"google_service_account_key": json.dumps({"type": "service_account", **key})}


_SOURCES: Mapping[str, Callable[[str, HadoopSettings], dict[str, str]]] = {
    **dict.fromkeys(("s3", "s3a"), _s3_options),
    **dict.fromkeys(("abfs", "abfss"), _azure_options),
    "gs": _google_options,
}


def _source(uri: str) -> Callable[[str, HadoopSettings], dict[str, str]] | None:
    scheme, separator, _ = uri.partition("://")
    return _SOURCES.get(scheme.lower()) if separator else None
