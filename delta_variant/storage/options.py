"""The words of `storage_options`: those of deltalake, each handed to what understands it.

Words are of any case, and those of a client may have the prefix of their store (`AWS_ALLOW_HTTP`). One that
nobody knows is left to the store, which refuses it by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .._checks import check_text
from ..errors import ArgumentTypeError, StoreError

__all__ = ["ALLOW_PATHS_OUTSIDE_TABLE", "StoreOptions", "client_options", "parse_options"]

ALLOW_PATHS_OUTSIDE_TABLE = "allow_paths_outside_table"
"""The word that lets a table name files elsewhere, as shallow clones do."""


@dataclass(frozen=True)
class StoreOptions:
    """What storage options say: to the store, to its client, of repeated requests, and to this library."""

    store: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
    retry: Mapping[str, Any] = field(default_factory=dict)
    allow_paths_outside_table: bool = False


_CLIENT = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_PREFIX = re.compile("aws_|azure_|google_")

# What steers deltalake itself: here commits are conditional in any case, and nothing else depends on it.
_WITHOUT_EFFECT = frozenset(
    {
        "allow_unsafe_rename",
        "aws_ec2_metadata_disabled",
        "aws_ec2_metadata_timeout",
        "aws_force_credential_load",
        "aws_s3_allow_unsafe_rename",
        "aws_s3_get_internal_server_error_retries",
        "aws_sts_pool_idle_timeout_seconds",
        "enable_io",
        "enable_time",
        "mount_allow_unsafe_rename",
        "multi_threaded",
        "object_store_concurrency_limit",
        "thread_name",
        "worker_threads",
    }
)

_DYNAMODB = "commits that a lock in DynamoDB orders are not written here: every writer must put conditionally"
_NO_ROLES = "no profile is read and no role is assumed here: give the credentials, or set AWS_ROLE_ARN"
_REFUSED = {
    "aws_s3_locking_provider": _DYNAMODB,
    "delta_dynamo_table_name": _DYNAMODB,
    "aws_profile": _NO_ROLES,
    "aws_iam_role_arn": _NO_ROLES,
    "aws_s3_assume_role_arn": _NO_ROLES,
}


def client_options(options: StoreOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what is said to the client, by words such as AWS_ALLOW_HTTP in the environment, too.

    A client that is told nothing asks the environment by itself, and one that is told something does not.
    """
    if not options.client:
        return {}
    words = ((_PREFIX.match(name.lower()), name) for name in environment)
    said = {name.lower()[prefix.end() :]: environment[name] for prefix, name in words if prefix}
    return {**{word: value for word, value in said.items() if word in _CLIENT}, **options.client}


def parse_options(options: Mapping[str, str]) -> StoreOptions:
    """Return what storage options say.

    Raises StoreError for one that cannot be honoured, by name, and ArgumentTypeError for one that is no text.
    """
    store: dict[str, str] = {}
    client: dict[str, str] = {}
    retry: dict[str, Any] = {}
    backoff: dict[str, Any] = {}
    outside = False
    if not isinstance(options, Mapping):
        raise ArgumentTypeError(f"storage_options is {options!r}: give a dict of names to texts")
    for given, value in options.items():
        check_text("the name of a storage option", given)
        if not isinstance(value, str):
            # The value may be a secret.
            kind = type(value).__name__  # type: ignore[unreachable]
            raise ArgumentTypeError(f"storage option {given} is of the type {kind}: give text")
        word = given.lower()
        bare = _PREFIX.sub("", word, count=1)
        if word in _REFUSED:
            raise StoreError(f"storage option {given}={value}: {_REFUSED[word]}")
        if word == ALLOW_PATHS_OUTSIDE_TABLE:
            outside = _parsed(given, value, _truth)
        elif bare in _CLIENT:
            client[bare] = value
        elif word in _RETRY:
            retry[word] = _parsed(given, value, _RETRY[word])
        elif (part := word.removeprefix("backoff_config.").removeprefix("backoff.")) in _BACKOFF:
            backoff[part] = _parsed(given, value, _BACKOFF[part])
        elif word == "aws_s3_pool_idle_timeout_seconds":
            client["pool_idle_timeout"] = f"{value}s"
        elif word == "aws_s3_addressing_style":
            store["aws_virtual_hosted_style_request"] = str(value.lower() == "virtual").lower()
        elif bare == "conditional_put" and value.lower() != "etag":
            raise StoreError(f"storage option {given}={value}: commits need a store that puts conditionally")
        elif word not in _WITHOUT_EFFECT:
            store[word] = value
    return StoreOptions(store, client, {**retry, "backoff": backoff} if backoff else retry, outside)


def _parsed(word: str, value: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(value)
    except (ValueError, LookupError, OverflowError) as error:
        raise StoreError(f"storage option {word}={value} has no value that is understood") from error


_TRUTHS = {
    "true": True,
    "1": True,
    "on": True,
    "yes": True,
    "false": False,
    "0": False,
    "off": False,
    "no": False,
}
_UNITS = {
    **dict.fromkeys(("ms", "msec", "millis"), 0.001),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
_SPANS = re.compile(r"\s*(?:\d+\s*[a-z]+\s*)+")
_SPAN = re.compile(r"(\d+)\s*([a-z]+)")


def _truth(text: str) -> bool:
    return _TRUTHS[text.lower()]


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**16:
        raise ValueError(text)
    return number


def _duration(text: str) -> timedelta:
    """Return a duration in the words of Rust's humantime: `1m 30s`."""
    if not _SPANS.fullmatch(text):
        raise ValueError(text)
    return timedelta(seconds=sum(int(count) * _UNITS[unit] for count, unit in _SPAN.findall(text)))


_RETRY: Mapping[str, Callable[[str], Any]] = {"max_retries": _count, "retry_timeout": _duration}
_BACKOFF: Mapping[str, Callable[[str], Any]] = {
    "init_backoff": _duration,
    "max_backoff": _duration,
    "base": float,
}
