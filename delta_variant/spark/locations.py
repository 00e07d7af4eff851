"""Locations that mean one folder for the driver, the executors and Spark, and the options of their stores.

For Spark, a path without a scheme belongs to the default file system of Hadoop, such as HDFS or DBFS. For
this package it is a path on the disk of each machine.

A session has a setting of Hadoop's file systems as `spark.hadoop.fs.s3a.access.key`, or as
`fs.s3a.access.key` if it was set at run time. The configuration object of the JVM also has those of
core-site.xml, and refers to keystores. A client of Spark Connect does not see it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from time import sleep
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from ..errors import StoreError
from ..storage.options import parse_options
from ..storage.store import Store, TableLocation, exists, local_path, storage_options_of, table_uri, uri_of
from .versions import SPARK_ERRORS

DEFAULT_FS = "fs.defaultFS"
LOCAL_FS = "file:///"
OBJECT_STORES = ("s3", "s3a", "gs", "abfs", "abfss")
DBFS = "/dbfs"
"""The mount of DBFS on machines of Databricks."""
VOLUMES = ("/Volumes/", "/Workspace/")
"""Folders of Databricks that are paths for Spark as well as on the disk."""

SHARED = "pass the URI of an object store, or file:///… for a mount that every machine has"
PAUSES = (0.5, 2.0)
"""The delays in seconds before a file is looked for again."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
# The default file systems of sessions of Spark Connect.
_KNOWN: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def is_location(text: str) -> bool:
    """Return whether a text is plainly a path or a URI, and cannot be the name of a table."""
    separators = {"/", os.sep}
    return text in (".", "..", "~") or bool(_SCHEME.match(text) or separators & set(text))


def locate(location: TableLocation, default_fs: str) -> TableLocation:
    """Return the location that Spark reads or writes for a given one, in the form of this package.

    Raises StoreError for a location that executors would look for elsewhere: in memory, or on the disk of
    each machine although Spark means a file system that this package cannot open.
    """
    text = table_uri(location)
    if text.lower().startswith("memory:"):
        raise StoreError(
            f"cannot open {text!r} on Spark because a table in memory belongs to one process, and tasks run "
            "in others: pass a path, or the URI of an object store",
            table=text,
        )
    if not isinstance(location, str | os.PathLike) or _SCHEME.match(text):
        return location
    scheme = default_fs.partition(":")[0].lower()
    is_dbfs = text == DBFS or text.startswith(f"{DBFS}/")
    if is_dbfs and not os.path.ismount(DBFS):
        raise StoreError(
            f"cannot open {text!r} because {DBFS} is not mounted on this machine: pass the URI of the cloud "
            f"storage, or file://{text} for a folder of the disk",
            table=text,
        )
    is_volume = text.startswith(VOLUMES) and os.path.isdir(text[: text.index("/", 1)])
    if scheme in ("", "file") or (scheme == "dbfs" and (is_dbfs or is_volume)):
        return location
    if scheme in OBJECT_STORES and text.startswith("/"):
        return default_fs.rstrip("/") + text
    raise StoreError(
        f"cannot open {text!r} because Spark looks for it in {default_fs} ({DEFAULT_FS}), and this package "
        f"on the disk of each machine: {SHARED}",
        table=text,
    )


def default_file_system(spark: SparkSession) -> str:
    """Return the URI of the file system of paths without a scheme in a session."""
    for name in (DEFAULT_FS, f"spark.hadoop.{DEFAULT_FS}"):
        if found := spark.conf.get(name, None):
            return found
    if not is_remote():
        context: Any = spark.sparkContext._jsc
        return str(context.hadoopConfiguration().get(DEFAULT_FS) or LOCAL_FS)
    if spark not in _KNOWN:
        _KNOWN[spark] = _probe(spark)
    return _KNOWN[spark]


def _probe(spark: SparkSession) -> str:
    """Return the default file system of a session of Spark Connect, which core-site.xml may set."""
    name = uuid4().hex
    try:
        _ = spark.read.text(f"/{name}").schema
    except SPARK_ERRORS as error:
        # The error has the whole URI of the path that does not exist.
        if found := re.search(rf"([a-z][a-z0-9+.-]+:(?://[^/\s]*)?)/{name}", str(error)):
            return f"{found[1]}/"
    return LOCAL_FS


def check_files(store: Store, paths: list[str]) -> None:
    """Raise StoreError if the driver does not find the files of tasks; `paths` has one file of each task.

    Of a remote store only one is looked for, because each costs a request.
    """
    paths = paths if store.local_root is not None else paths[:1]
    missing = [path for path in paths if not exists(store, path)]
    for pause in PAUSES:
        if not missing or store.local_root is None:
            break
        sleep(pause)
        missing = [path for path in missing if not _is_listed(store, path)]
    if missing:
        raise StoreError(
            f"cannot commit to {store.uri} because the driver does not find files that {len(missing)} of "
            f"{len(paths)} tasks wrote, such as {uri_of(store, missing[0])}: executors have a disk or a "
            f"store of their own at this location, where the files remain; {SHARED}",
            table=store.uri,
            file=missing[0],
        )


def _is_listed(store: Store, path: str) -> bool:
    """Return whether a local file exists; listing its folder renews what a client of NFS remembers."""
    local = local_path(store, path)
    try:
        return local is not None and local.name in os.listdir(local.parent)
    except OSError:
        return False


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
