"""Local paths and URIs of tables and files: which text is which, and which URIs are accepted."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from .._redaction import redact_location
from ..errors import StoreError
from ..protocol.actions import local_path_of

SCHEMES = ("file", "s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https", "memory", "uc")
"""The URI schemes of table locations."""

_MOUNT = "pass the path of a mount that every machine has, or move the table to an object store"
# What to pass for a scheme that only file systems of Hadoop open.
_INSTEAD = {
    "dbfs": "pass the URI of the cloud storage, or the path of a mount: /dbfs/… or /Volumes/…",
    "s3n": "pass a URI that starts with s3://",
    **dict.fromkeys(("wasb", "wasbs"), "pass abfss://container@account.dfs.core.windows.net/…"),
    **dict.fromkeys(("hdfs", "webhdfs", "swebhdfs", "viewfs", "har", "maprfs", "ofs", "o3fs"), _MOUNT),
}

# One letter before the colon is a Windows drive. A colon after a slash is part of a name.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Hadoop writes some URIs with one slash. Without a slash, the colon is part of a file name below the root.
ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}


def local_location(what: str, path: str | os.PathLike[str]) -> Path:
    """Return the local path of a file or folder that must be on a local disk.

    Args:
        what: The purpose of the path, as the subject of the error message.
        path: A local path, in which `~` is the home directory, or a URI of the scheme `file`. An existing
            path may look like a URI.

    Raises:
        StoreError: For the URI of a remote file.
    """
    text = os.fspath(path)
    if os.path.exists(text):
        return Path(text)
    local = local_file(text)
    if local is None:
        shown = redact_location(text)
        raise StoreError(
            f"{what} must be on a local disk, got the URI {shown!r}; copy the file, or write "
            f"{f'./{shown}'!r} for a local file of this name",
            file=shown,
        )
    return local


def local_file(uri: str) -> Path | None:
    """Return the local path that text stands for, None for a URI of another scheme than `file`."""
    if (absolute := local_path_of(uri)) is not None:
        return Path(unquote(absolute))
    if _SCHEME.match(uri):
        return None
    # As deltalake, DuckDB and Polars do. Path.expanduser would raise an error for an unknown ~user.
    return Path(os.path.expanduser(uri) if uri == "~" or uri.startswith(("~/", f"~{os.sep}")) else uri)


def check_location(uri: str) -> None:
    """Raise StoreError for a URI with a password, a query or a fragment, any of which may be a credential."""
    shown = redact_location(uri)
    scheme, _, rest = uri.partition("://")
    user, at, host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")
    is_web = scheme.lower() in ("http", "https")
    if ":" in user or (at if is_web else ":" in host):
        raise StoreError(
            f"cannot open {shown!r} because a URI must not contain a user or password; pass credentials as "
            "storage options",
            table=shown,
        )
    if "?" in uri or "#" in uri:
        raise StoreError(
            f"cannot open {shown!r} because ? or # ends the path of a URI; write %3F for ? and %23 for #, "
            "and pass a signature of Azure as the storage option azure_storage_sas_token",
            table=shown,
        )


def check_scheme(uri: str) -> None:
    """Raise StoreError for a URI of an unsupported scheme or form."""
    uri = redact_location(uri)
    match = _SCHEME.match(uri)
    scheme = "" if match is None else match[1].lower()
    if scheme == "file":
        raise StoreError(
            f"cannot open {uri!r} because a file URI has an absolute path, such as file:///folder/table",
            table=uri,
        )
    if scheme in _INSTEAD:
        raise StoreError(
            f"cannot open {uri!r} because the scheme {scheme!r} is not supported, which only Hadoop's file "
            f"systems open: {_INSTEAD[scheme]}; write {f'./{uri}'!r} for a local folder of this name",
            table=uri,
        )
    if scheme not in SCHEMES:
        known = ", ".join(f"{each}://" for each in SCHEMES)
        raise StoreError(
            f"cannot open {uri!r} because the scheme {scheme!r} is not supported: pass a local path, or a "
            f"URI that starts with one of {known}; write {f'./{uri}'!r} for a local folder of this name",
            table=uri,
        )
    if not _URI.match(uri):
        raise StoreError(
            f"cannot open {uri!r} because a URI of the scheme {scheme!r} starts with {scheme}://; "
            "pathlib removes a slash, so pass URIs as text",
            table=uri,
        )


def relative_path(root: str, uri: str) -> str | None:
    """Return the path of the file `uri` relative to the URI `root`, None for a file outside the root."""
    root = f"{plain_scheme(unquote(root))}/"
    uri = plain_scheme(uri)
    return uri[len(root) :] if uri.startswith(root) else None


def plain_scheme(uri: str) -> str:
    """Return a URI with the scheme in lower case, and one scheme for each store: `s3` also for `s3a`."""
    scheme, colon, rest = uri.partition(":")
    return f"{_SAME_SCHEMES.get(scheme.lower(), scheme.lower())}{colon}{rest}"
