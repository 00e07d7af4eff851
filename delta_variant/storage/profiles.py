"""Profiles of the AWS command line: their credentials, region and endpoint, as botocore loads them.

The client of the store knows neither profiles nor the files in `~/.aws`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from .._redaction import redact_option, remember_secrets
from ..errors import StoreError

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
