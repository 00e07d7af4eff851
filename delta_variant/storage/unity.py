"""Tables of a Unity Catalog: the client of its Delta API, and the temporary credentials of a table.

The API is `api/delta.yaml` of Unity Catalog, version 1: the catalog returns the location of a table with the
commits that it has ratified and that are not published yet, ratifies commits, and vends credentials.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from .._logging import get_logger
from .._redaction import redact, redact_error, redact_location
from ..errors import CommitUnknownError, StoreError, TableNotFoundError, VersionExistsError
from .options import ALLOW_HTTP_CATALOG, CATALOG_TOKEN_KEYS, CATALOG_URL_KEYS
from .request import Retries, Tries

SCHEME = "uc"
"""The scheme of the URIs of tables in a Unity Catalog: `uc://catalog.schema.table`."""

CATALOG_MANAGED = "delta.feature.catalogManaged"
TIMEOUT_SECONDS = 60

_API = "/api/2.1/unity-catalog"
_UNAVAILABLE = (408, 425, 500, 502, 503, 504)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

Answer = TypeVar("Answer")
Credentials = Mapping[str, Any]

_LOGGER = get_logger(__name__)


class CommitLimitError(StoreError):
    """The catalog ratifies no commit of a table until earlier ones are published."""


class RatifiedCommit(msgspec.Struct, frozen=True, rename="kebab"):
    """A commit that the catalog has ratified: a file in `_delta_log/_staged_commits`.

    `timestamp` is the in-commit timestamp. Times are in milliseconds since 1970, the size in bytes.
    """

    version: int
    timestamp: int
    file_name: str
    file_size: int
    file_modification_timestamp: int


class _Metadata(msgspec.Struct, frozen=True, rename="kebab"):
    table_type: str
    table_uuid: str
    location: str
    properties: dict[str, str]


class LoadedTable(msgspec.Struct, frozen=True, rename="kebab"):
    """A table as the catalog describes it at one time; `commits` are those that are not published yet."""

    metadata: _Metadata
    commits: tuple[RatifiedCommit, ...] = ()
    latest_table_version: int | None = None


class _Credential(msgspec.Struct, frozen=True, rename="kebab"):
    config: dict[str, str | None]
    expiration_time_ms: int | None = None

    def __repr__(self) -> str:
        return f"_Credential(expiration_time_ms={self.expiration_time_ms})"


class _VendedCredentials(msgspec.Struct, frozen=True, rename="kebab"):
    storage_credentials: tuple[_Credential, ...]


class _Problem(msgspec.Struct, frozen=True):
    message: str
    type: str


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Problem


class _RequestError(Exception):
    """The catalog rejected a request, or did not answer it if `kind` is empty."""

    def __init__(self, message: str, kind: str = "", status: int = 0) -> None:
        super().__init__(redact(message))
        self.kind = kind
        self.is_rejection = 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT
        self.is_temporary = status in (0, *_UNAVAILABLE) or kind == "TooManyRequestsException"


class _Outcome:
    """The outcome of a request's tries; `may_be_performed` is true once one of them was not rejected."""

    may_be_performed = False


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect, which could send the access token to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class CatalogTable:
    """A table in a Unity Catalog.

    `loaded` is the last description of the table that the catalog has returned. Its list of commits is
    complete: a version that is not later than the latest one and not in the list is published.
    """

    def __init__(self, name: Sequence[str], url: str, token: str | None, retries: Retries) -> None:
        self.uri = f"{SCHEME}://{'.'.join(name)}"
        catalog, schema, table = (quote(part, safe="") for part in name)
        self._url = f"{url}{_API}/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}"
        self._token = token
        self._retries = retries
        self.loaded = self._get(LoadedTable)

    @property
    def table_id(self) -> str:
        """Return the id of the table, which a table that is created later under the same name lacks."""
        return self.loaded.metadata.table_uuid

    @property
    def location(self) -> str:
        """Return the URI of the table's root."""
        return self.loaded.metadata.location

    @property
    def manages_commits(self) -> bool:
        """Return whether the catalog decides on commits, as the table feature `catalogManaged` requires."""
        return self.loaded.metadata.properties.get(CATALOG_MANAGED) == "supported"

    def refresh(self) -> LoadedTable:
        """Return the table as the catalog describes it now.

        Raises TableNotFoundError if there is no longer a table of this name, or if it is another one.
        """
        return self._keep(self._get(LoadedTable))

    def credentials(self) -> Credentials:
        """Return temporary credentials in the form that `obstore` expects of a provider.

        They permit writing if the catalog grants it, else reading.
        """
        try:
            vended = self._get(_VendedCredentials, "/credentials?operation=READ_WRITE", lambda error: error)
        except _RequestError as error:
            if error.kind != "PermissionDeniedException":
                raise self._error(error) from error
            vended = self._get(_VendedCredentials, "/credentials?operation=READ")
        found = next(
            (_provided(each) for each in vended.storage_credentials if any(each.config.values())), None
        )
        if found is None:
            raise StoreError(f"the catalog vends no credentials for {self.location}", table=self.uri)
        _LOGGER.debug("%s: got credentials until %s", self.uri, found["expires_at"])
        return found

    def ratify(self, commit: RatifiedCommit, metadata_updates: Sequence[Mapping[str, Any]]) -> LoadedTable:
        """Ask the catalog to ratify a staged commit, together with changes of the table's metadata.

        A request without an answer is repeated: the catalog recognizes the file. Raises VersionExistsError if
        another commit has the version, CommitLimitError if commits must be published first, and
        CommitUnknownError after any other error, unless the catalog rejected each of the requests.
        """

        def translate(error: _RequestError) -> Exception:
            if error.kind == "CommitVersionConflictException":
                return VersionExistsError(f"version {commit.version} already exists", table=self.uri)
            if error.kind == "ResourceExhaustedException":
                return CommitLimitError(f"the catalog did not ratify the commit: {error}", table=self.uri)
            return self._error(error)

        added = {"action": "add-commit", "commit": msgspec.to_builtins(commit)}
        outcome = _Outcome()
        try:
            return self._update([added, *metadata_updates], translate, outcome)
        except (StoreError, TableNotFoundError) as error:
            if not outcome.may_be_performed:
                raise
            raise CommitUnknownError(
                f"cannot determine whether the catalog ratified the commit: {error.message}; check the table "
                "before retrying",
                table=self.uri,
            ) from error

    def report_published(self, version: int) -> LoadedTable:
        """Tell the catalog that the commits up to a version are published."""
        return self._update(
            [{"action": "set-latest-backfilled-version", "latest-published-version": version}], self._error
        )

    def _update(
        self,
        updates: Sequence[Mapping[str, Any]],
        translate: Callable[[_RequestError], Exception],
        outcome: _Outcome | None = None,
    ) -> LoadedTable:
        requirement = {"type": "assert-table-uuid", "uuid": self.table_id}
        body = msgspec.json.encode({"requirements": [requirement], "updates": updates})
        return self._keep(self._request("POST", "", body, LoadedTable, translate, outcome or _Outcome()))

    def _keep(self, loaded: LoadedTable) -> LoadedTable:
        if loaded.metadata.table_uuid != self.table_id:
            raise TableNotFoundError(
                f"{self.uri} was dropped and another table has its name now: open it again", table=self.uri
            )
        # Another thread may have got a later answer.
        if (loaded.latest_table_version or 0) >= (self.loaded.latest_table_version or 0):
            self.loaded = loaded
        return loaded

    def _get(
        self,
        answer: type[Answer],
        path: str = "",
        translate: Callable[[_RequestError], Exception] | None = None,
    ) -> Answer:
        return self._request("GET", path, None, answer, translate or self._error, _Outcome())

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        answer: type[Answer],
        translate: Callable[[_RequestError], Exception],
        outcome: _Outcome,
    ) -> Answer:
        budget = Tries(self._retries, self.uri)
        try:
            while True:
                try:
                    return _send(Request(f"{self._url}{path}", body, self._headers(), method=method), answer)
                except _RequestError as error:
                    outcome.may_be_performed |= not error.is_rejection
                    is_locked = method == "POST" and error.kind == "UpdateRequirementConflictException"
                    if not (error.is_temporary or is_locked) or not budget.may_repeat(str(error)):
                        raise translate(error) from error
                if is_locked:
                    # Another commit held the lock of the table, or the table is another one.
                    self.refresh()
        finally:
            budget.warn_if_slow()

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        return headers if self._token is None else {**headers, "Authorization": f"Bearer {self._token}"}

    def _error(self, error: _RequestError) -> Exception:
        if error.kind in ("NoSuchTableException", "NoSuchSchemaException", "NoSuchCatalogException"):
            return TableNotFoundError(
                f"there is no table {self.uri}: {error}; create it with the catalog", table=self.uri
            )
        return StoreError(f"the request to the catalog failed: {error}", table=self.uri)


def open_catalog_table(uri: str, options: Mapping[str, str], retries: Retries) -> CatalogTable:
    """Return the table of a URI such as `uc://catalog.schema.table`.

    Args:
        uri: The URI.
        options: The storage options of the catalog, with keys in lower case.
        retries: The budget of each request.

    Raises:
        StoreError: For an invalid URI, or if the URL of the catalog is missing or not safe for a token.
        TableNotFoundError: If the catalog has no such table.
    """
    name = uri.partition("://")[2].split(".")
    if len(name) != 3 or not all(name):
        raise StoreError(f"invalid URI {uri!r}: expected uc://catalog.schema.table", table=uri)
    url = _configured(CATALOG_URL_KEYS, options)
    if url is None:
        raise StoreError(
            f"cannot open {uri} because the URL of the catalog is unknown: set the storage option "
            "unity_catalog_url or the environment variable UNITY_CATALOG_URL",
            table=uri,
        )
    url = (url if "://" in url else f"https://{url}").strip().rstrip("/").removesuffix(_API)
    allows_http = (_configured((ALLOW_HTTP_CATALOG,), options) or "false").lower() == "true"
    parts = urlsplit(url)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and (allows_http or parts.hostname in _LOOPBACK)
    ):
        raise StoreError(
            f"cannot send a token to {redact_location(url)!r} because it is not an https:// URL; "
            "set the storage option unity_allow_http_url=true for an http:// URL",
            table=uri,
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise StoreError(
            f"invalid URL of the catalog {redact_location(url)!r}: expected neither a user nor a query; pass "
            "the token as the storage option unity_access_token",
            table=uri,
        )
    return CatalogTable(name, url, _token(uri, options), retries)


def _token(uri: str, options: Mapping[str, str]) -> str | None:
    """Return the access token, without the line break of its file. Raise StoreError for an invalid one."""
    token = (_configured(CATALOG_TOKEN_KEYS, options) or "").strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise StoreError(
            "invalid access token of the catalog: expected ASCII text without blanks and control characters",
            table=uri,
        )
    return token or None


def _configured(keys: Sequence[str], options: Mapping[str, str]) -> str | None:
    values = (*map(options.get, keys), *(os.environ.get(key.upper()) for key in keys))
    return next((value for value in values if value), None)


def _send(request: Request, answer: type[Answer]) -> Answer:
    try:
        with build_opener(_NoRedirects).open(request, timeout=TIMEOUT_SECONDS) as response:
            content = response.read()
    except HTTPError as error:
        raise _rejection(error) from error
    except (URLError, HTTPException, OSError) as error:
        redact_error(error)
        reason = getattr(error, "reason", None) or error
        raise _RequestError(str(reason) or type(error).__name__) from error
    try:
        return msgspec.json.decode(content, type=answer)
    except msgspec.MsgspecError as error:
        raise _RequestError(f"the catalog sent an invalid answer: {error}", "InvalidAnswer", 200) from error


def _rejection(error: HTTPError) -> _RequestError:
    try:
        with error:
            problem = msgspec.json.decode(error.read(), type=_ErrorBody).error
    except (HTTPException, OSError) as broken:
        return _RequestError(f"HTTP status {error.code}: {broken}")
    except msgspec.MsgspecError:
        return _RequestError(f"HTTP status {error.code}", f"HTTP {error.code}", error.code)
    return _RequestError(f"{problem.type}: {problem.message}", problem.type, error.code)


def _provided(vended: _Credential) -> Credentials:
    config, expires = vended.config, vended.expiration_time_ms
    expires_at = None if expires is None else datetime.fromtimestamp(expires / 1000, timezone.utc)
    if sas_token := config.get("azure.sas-token"):
        return {"sas_token": sas_token, "expires_at": expires_at}
    if oauth_token := config.get("gcs.oauth-token"):
        return {"token": oauth_token, "expires_at": expires_at}
    return {
        "access_key_id": config.get("s3.access-key-id"),
        "secret_access_key": config.get("s3.secret-access-key"),
        "token": config.get("s3.session-token"),
        "expires_at": expires_at,
    }
