"""Translate errors of stores: one sentence with the reason and the remedy, without credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError

from .._redaction import redact_error
from .._system_errors import reason_of, with_remedy
from ..errors import StoreError

__all__ = ["translate_errors"]


@contextmanager
def translate_errors(table: str, file: str | None = None) -> Iterator[None]:
    """Raise errors of a request as StoreError. Credentials are masked in the message and in its causes."""
    # obstore appends the debug form of an error to its first line, and raises ValueError for an invalid path.
    try:
        yield
    except FileNotFoundError as error:
        redact_error(error)
        raise StoreError(f"there is no file {file or table}", table=table, file=file) from error
    except (BaseError, OSError, ValueError, NotImplementedError) as error:
        redact_error(error)
        message = with_remedy(_reason(error))
        raise StoreError(message, table=None if file is None else table).at(table=table, file=file) from error


# Without credentials in the environment, the client asks the metadata service of a cloud machine.
_METADATA_SERVICE = re.compile(
    r"Generic (?P<store>\w+) error(?s:.*)//(?:169\.254\.169\.254|metadata\.google\.internal|metadata)/"
)
_CREDENTIALS = {
    "S3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment or as storage options, or "
    "AWS_SKIP_SIGNATURE=true for a public bucket; AWS_PROFILE is not supported, and "
    "`aws configure export-credentials --format env` prints the variables of a profile",
    "MicrosoftAzure": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or "
    "AZURE_STORAGE_SAS_TOKEN in the environment or as storage options, or AZURE_SKIP_SIGNATURE=true for a "
    "public container",
    "GCS": "set GOOGLE_SERVICE_ACCOUNT to the path of a key file, in the environment or as a storage option, "
    "or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
}
_NO_HTTP = (
    "cannot connect because the URL of the store is not an https:// URL; set the storage option "
    "allow_http=true, or AWS_ALLOW_HTTP, AZURE_ALLOW_HTTP or GOOGLE_ALLOW_HTTP in the environment, for an "
    "http:// URL"
)
_ANSWER = re.compile(r"<Code>(?P<code>[^<]*)</Code>\s*<Message>(?P<message>[^<\n]*)")


def _reason(error: Exception) -> str:
    """Return the error code and message in the answer of a store, or else the first line of the error."""
    text = str(error)
    if answer := _ANSWER.search(text):
        return f"{answer['code']}: {answer['message']}"
    if isinstance(error, OSError) and error.strerror:
        return reason_of(error)
    if (asked := _METADATA_SERVICE.search(text)) and (remedy := _CREDENTIALS.get(asked["store"])):
        return f"there are no credentials: {remedy}"
    return _NO_HTTP if "source: BadScheme" in text else text.split("\n", 1)[0]
