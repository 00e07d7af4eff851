"""Errors of the operating system, with a remedy for each."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping

_CODE = re.compile(r"\(os error (?P<code>\d+)\)")
_REMEDIES: Mapping[int, str] = {
    errno.ENOSPC: "free space on this disk, then retry",
    errno.EDQUOT: "free space within this quota, then retry",
    errno.EFBIG: "raise the limit on file sizes (`ulimit -f`), then retry",
    errno.EACCES: "check the permissions of the file and its directory",
    errno.EPERM: "check the permissions of the file and its directory",
    errno.EROFS: "make this file system writable, then retry",
    errno.EMFILE: "raise the limit on open files (`ulimit -n`), then retry",
}


def reason_of(error: Exception) -> str:
    """Return the reason of an operating system error, with its remedy if one is known."""
    if not isinstance(error, OSError) or error.errno is None or not error.strerror:
        return with_remedy(str(error))
    remedy = _REMEDIES.get(error.errno)
    return f"{error.strerror}; {remedy}" if remedy else error.strerror


def with_remedy(text: str) -> str:
    """Return an error text of a native library, with the remedy for the error code in it if one is known."""
    found = _CODE.search(text)
    remedy = None if found is None else _REMEDIES.get(int(found["code"]))
    return f"{text}; {remedy}" if remedy else text
