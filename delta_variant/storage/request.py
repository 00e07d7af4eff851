"""A request to a store: its budget of tries and time, and the translation of its errors.

The client of a store repeats requests that the store rejects temporarily, requests to read without an answer,
and bodies that are cut off. It repeats neither a put without an answer nor a listing that is cut off: those
are repeated here. Errors become one sentence with the reason and the remedy, without credentials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic, sleep
from typing import Any, TypeVar

from obstore.exceptions import BaseError, GenericError

from .._logging import get_logger
from .._redaction import redact_error
from .._system_errors import reason_of, with_remedy
from ..errors import StoreError

Result = TypeVar("Result")

LONGEST_PAUSE = 2.0
WARNED_SECONDS = 30.0
"""A request that takes longer is a warning in the log."""

_LOGGER = get_logger(__name__)

_BROKEN_CONNECTION = re.compile(r"\bkind: (?:Interrupted|Timeout),")
# The client has repeated the request for a body as often as it may.
_BROKEN_BODY = re.compile(r"Generic \w+ error: HTTP error: ")
_CLIENT_RETRIES = re.compile(r"\bretries: (\d+),")


@dataclass(frozen=True)
class Retries:
    """How often a request is repeated, and for how many seconds; `first_pause` doubles with each try."""

    most: int = 10
    seconds: float = 180.0
    first_pause: float = 0.1

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Retries:
        """Return the budget of parsed storage options, by default that of the client."""
        default = cls()
        return cls(
            options.get("max_retries", default.most),
            _seconds(options.get("retry_timeout"), default.seconds),
            _seconds(options.get("backoff", {}).get("init_backoff"), default.first_pause),
        )

    def run(self, name: str, send: Callable[[], Result]) -> Result:
        """Return the result of a request to a store, which is repeated if its connection breaks."""
        tries = Tries(self, name)
        try:
            while True:
                try:
                    return send()
                except GenericError as error:
                    text = str(error)
                    if not _BROKEN_CONNECTION.search(text) or _BROKEN_BODY.match(text):
                        raise
                    repeated = _CLIENT_RETRIES.search(text)
                    if not tries.may_repeat("the connection broke", 1 + int(repeated[1] if repeated else 0)):
                        raise
        finally:
            tries.warn_if_slow()


NO_RETRIES = Retries(0)


class Tries:
    """The tries of one request, which `name` describes."""

    def __init__(self, retries: Retries, name: str) -> None:
        self._retries = retries
        self._name = name
        self._start = monotonic()
        self._failed = 0

    def may_repeat(self, reason: str, failed: int = 1) -> bool:
        """Count failed tries, and wait before the next one; return False if the budget is spent."""
        self._failed += failed
        elapsed = monotonic() - self._start
        if self._failed > self._retries.most or elapsed > self._retries.seconds:
            return False
        pause = min(self._retries.first_pause * 2 ** min(self._failed - 1, 60), LONGEST_PAUSE)
        _LOGGER.debug("%s: %s, retrying in %.1f s", self._name, reason, pause)
        sleep(pause)
        return True

    def warn_if_slow(self) -> None:
        """Log a request that took long, with its repetitions by this library."""
        if (elapsed := monotonic() - self._start) > WARNED_SECONDS:
            _LOGGER.warning("%s: the request took %.0f s, %d tries failed", self._name, elapsed, self._failed)


def _seconds(duration: timedelta | None, default: float) -> float:
    return default if duration is None else duration.total_seconds()


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
    "S3": "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the environment or as storage "
    "options, or AWS_SKIP_SIGNATURE=true for a public bucket",
    "MicrosoftAzure": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or "
    "AZURE_STORAGE_SAS_TOKEN in the environment or as storage options, or AZURE_SKIP_SIGNATURE=true for a "
    "public container",
    "GCS": "set GOOGLE_SERVICE_ACCOUNT to the path of a key file, in the environment or as a storage option, "
    "or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
}
_NOT_HTTPS = re.compile(r"Generic (?P<store>\w+) error(?s:.*)source: BadScheme")
_PREFIXES = {"S3": "AWS", "MicrosoftAzure": "AZURE", "GCS": "GOOGLE"}
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
    if (asked := _NOT_HTTPS.search(text)) and (prefix := _PREFIXES.get(asked["store"])):
        return (
            "cannot connect because the URL of the store is not an https:// URL; set "
            f"{prefix}_ALLOW_HTTP=true in the environment or as a storage option for an http:// URL"
        )
    return text.split("\n", 1)[0]
