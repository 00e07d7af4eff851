"""Options of stores: parse `storage_options`, and load profiles of the AWS command line as botocore does.

The keys are those of deltalake, each for the store, its HTTP client or its retries. They are
case-insensitive, and those of the HTTP client may have the prefix of a store (`AWS_ALLOW_HTTP`). An unknown
key is passed to the store, which rejects it with an error that names it. The client of the store knows
neither profiles nor the files in `~/.aws`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from .._checks import is_unicode
from .._redaction import redact_option, remember_secrets
from ..errors import ArgumentTypeError, StoreError

# Options of a Unity Catalog, and variables of the environment in capitals. All but the first are delta-rs's.
CATALOG_URL_KEYS = ("unity_catalog_url", "unity_workspace_url", "databricks_workspace_url", "databricks_host")
CATALOG_TOKEN_KEYS = ("unity_access_token", "databricks_access_token", "databricks_token")
ALLOW_HTTP_CATALOG = "unity_allow_http_url"
CATALOG_KEYS = frozenset((*CATALOG_URL_KEYS, *CATALOG_TOKEN_KEYS, ALLOW_HTTP_CATALOG))

ALLOW_PATHS_OUTSIDE_TABLE = "allow_paths_outside_table"
"""The option that allows files outside the table, as shallow clones have them."""


@dataclass(frozen=True)
class StoreOptions:
    """Parsed storage options: of the store, of its HTTP client, of its retries, of a catalog, and our own."""

    store: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    retry: Mapping[str, Any] = field(default_factory=dict)
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)
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

# Options of deltalake itself. They have no effect here, where every commit is a conditional put.
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

_DYNAMODB = "commits with a lock in DynamoDB are not supported; let every writer use conditional puts"
_NO_ROLE = (
    "an option cannot name a role to assume; set aws_profile to a profile with role_arn, or AWS_ROLE_ARN and "
    "AWS_WEB_IDENTITY_TOKEN_FILE in the environment"
)
_UNSUPPORTED = {
    "aws_s3_locking_provider": _DYNAMODB,
    "delta_dynamo_table_name": _DYNAMODB,
    "aws_iam_role_arn": _NO_ROLE,
    "aws_s3_assume_role_arn": _NO_ROLE,
}


def client_options(options: StoreOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the HTTP client, including environment variables such as AWS_ALLOW_HTTP.

    A client reads the environment by itself only if it gets no options.
    """
    if not options.client:
        return {}
    prefixes = ((_PREFIX.match(name.lower()), name) for name in environment)
    found = {name.lower()[prefix.end() :]: environment[name] for prefix, name in prefixes if prefix}
    return {**{key: value for key, value in found.items() if key in _CLIENT}, **options.client}


def parse_options(options: Mapping[str, str]) -> StoreOptions:
    """Parse storage options. Messages of errors have no value that may be a secret.

    Raises StoreError for an unsupported option or value, and ArgumentTypeError for a key or value that is not
    a string.
    """
    store: dict[str, str] = {}
    client: dict[str, str] = {}
    retry: dict[str, Any] = {}
    catalog: dict[str, str] = {}
    backoff: dict[str, Any] = {}
    outside = False
    if not isinstance(options, Mapping):
        kind = type(options).__name__  # type: ignore[unreachable]
        raise ArgumentTypeError(f"storage_options: expected a dict of strings to strings, got {kind}")
    for given, value in options.items():
        if not isinstance(given, str):
            kind = type(given).__name__  # type: ignore[unreachable]
            raise ArgumentTypeError(f"storage_options: expected strings as keys, got {kind}")
        if not isinstance(value, str):
            kind = type(value).__name__  # type: ignore[unreachable]
            raise ArgumentTypeError(f"storage option {given}: expected a string, got a value of type {kind}")
        if not is_unicode(given) or not is_unicode(value):
            raise ValueError("storage_options: expected Unicode text, got an unpaired surrogate")
        key = given.lower()
        bare = _PREFIX.sub("", key, count=1)
        if key in _UNSUPPORTED:
            raise StoreError(f"storage option {redact_option(given, value)}: {_UNSUPPORTED[key]}")
        if key == ALLOW_PATHS_OUTSIDE_TABLE:
            outside = _parse_value(given, value, _truth)
        elif key in CATALOG_KEYS:
            catalog[key] = value
        elif bare in _CLIENT:
            client[bare] = value
        elif key in _RETRY:
            retry[key] = _parse_value(given, value, _RETRY[key])
        elif (part := key.removeprefix("backoff_config.").removeprefix("backoff.")) in _BACKOFF:
            backoff[part] = _parse_value(given, value, _BACKOFF[part])
        elif key == "aws_s3_pool_idle_timeout_seconds":
            client["pool_idle_timeout"] = f"{value}s"
        elif key == "aws_s3_addressing_style":
            store["aws_virtual_hosted_style_request"] = str(value.lower() == "virtual").lower()
        elif bare == "conditional_put" and value.lower() != "etag":
            shown = redact_option(given, value)
            raise StoreError(f"storage option {shown}: commits need conditional puts; set 'etag'")
        elif key not in _WITHOUT_EFFECT:
            store[key] = value
    return StoreOptions(store, client, {**retry, "backoff": backoff} if backoff else retry, catalog, outside)


def _parse_value(key: str, value: str, parse: Callable[[str], Any]) -> Any:
    # The error of `parse` is not the context of the other one, because it has the value.
    with suppress(ValueError, LookupError, OverflowError):
        return parse(value)
    raise StoreError(
        f"storage option {redact_option(key, value)}: invalid value, expected {_EXPECTED[parse]}"
    )


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
    """Parse a duration in the format of Rust's humantime, such as `1m 30s`."""
    if not _SPANS.fullmatch(text):
        raise ValueError(text)
    return timedelta(seconds=sum(int(count) * _UNITS[unit] for count, unit in _SPAN.findall(text)))


_EXPECTED: Mapping[Callable[[str], Any], str] = {
    _truth: "'true' or 'false'",
    _count: "a number from 0 to 65535",
    _duration: "a duration such as '1m 30s'",
    float: "a number",
}
_RETRY: Mapping[str, Callable[[str], Any]] = {"max_retries": _count, "retry_timeout": _duration}
_BACKOFF: Mapping[str, Callable[[str], Any]] = {
    "init_backoff": _duration,
    "max_backoff": _duration,
    "base": float,
}


PROFILE = "aws_profile"
"""The storage option that names a profile, and in capitals the environment variable."""

# Keys that decide without a profile, as in the command line of AWS.
_CREDENTIALS = frozenset({"aws_access_key_id", "access_key_id", "aws_skip_signature", "skip_signature"})
# What a profile says of a store, and the keys that decide without it.
_SETTINGS = {
    "region": ("aws_region", "aws_default_region", "region", "default_region"),
    "endpoint_url": ("aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint"),
}
# botocore renews temporary credentials at the latest ten minutes before they expire.
_VALID = timedelta(minutes=10)


def find_profile(options: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Return the profile that the options or the environment name, unless they have credentials."""
    if not _CREDENTIALS.isdisjoint(options):
        return None
    if name := options.get(PROFILE):
        return name
    is_known = any(key.upper() in environment for key in _CREDENTIALS)
    return None if is_known else environment.get(PROFILE.upper()) or None


class Profile:
    """A profile, which provides `obstore` with the credentials of a table's store."""

    def __init__(self, name: str, table: str) -> None:
        self._arguments = name, table
        try:
            from botocore.exceptions import BotoCoreError, ProfileNotFound
            from botocore.session import Session
        except ImportError as error:
            raise self._error(
                "botocore is not installed; run `pip install botocore`, or set the variables that "
                "`aws configure export-credentials --format env` prints"
            ) from error
        try:
            session = Session(profile=name)
            self._settings = session.get_scoped_config()
            self._credentials = session.get_credentials()
        except ProfileNotFound:
            # The error has the name, which may be a secret that was passed by mistake.
            raise self._error("~/.aws/config and ~/.aws/credentials have no such profile") from None
        except BotoCoreError as error:
            raise self._error(str(error)) from error
        if self._credentials is None:
            raise self._error("it has no credentials; run `aws configure`")

    def _error(self, reason: str) -> StoreError:
        name, table = self._arguments
        return StoreError(f"cannot load {redact_option(PROFILE, name)} because {reason}").at(table=table)

    def __reduce__(self) -> tuple[type[Profile], tuple[str, str]]:
        return Profile, self._arguments

    def __call__(self) -> dict[str, Any]:
        """Return credentials that are valid for some minutes."""
        found = self._credentials.get_frozen_credentials()
        secrets = {"aws_secret_access_key": found.secret_key, "aws_session_token": found.token}
        remember_secrets({key: secret for key, secret in secrets.items() if secret}, {})
        return {
            "access_key_id": found.access_key,
            "secret_access_key": found.secret_key,
            "token": found.token,
            "expires_at": datetime.now(timezone.utc) + _VALID,
        }

    def settings(self, options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
        """Return the storage options of the profile that neither the options nor the environment set."""
        return {
            keys[0]: self._settings[name]
            for name, keys in _SETTINGS.items()
            if name in self._settings
            if not any(key in options or key.upper() in environment for key in keys)
        }
