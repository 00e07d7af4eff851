"""Locations that mean one folder for the driver, for the executors and for Spark.

For Spark, a path without a scheme belongs to the default file system of Hadoop, such as HDFS or DBFS. For
this package it is a path on the disk of each machine.
"""

from __future__ import annotations

import os
import re
from time import sleep
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from ..errors import StoreError
from ..storage.store import Store, TableLocation, exists, local_path, table_uri, uri_of
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
