"""Mask secrets in texts that a person may read: messages of errors, their causes, log records and reprs.

Two kinds of secrets are masked: parts of URLs that are credentials by their place, and the values of storage
options and environment variables that `remember_secrets` was told of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

MASK = "***"
SHORTEST_SECRET = 6
"""Shorter values are not masked, because they occur in other words."""

MOST_SECRETS = 512

# Options whose values are not credentials, without the prefix of a store.
_PUBLIC = re.compile(
    r"(?:aws_|azure_|google_)?(?:storage_|s3_)?(?:"
    r"account_name|authority_host|authority_id|bucket|bucket_name|client_id|container|"
    r"container_name|default_region|endpoint|endpoint_url|endpoint_url_s3|"
    r"federated_token_file|location|proxy_ca_certificate|proxy_excludes|region|root_certificate|tenant_id|"
    r"user_agent|web_identity_token_file)"
)
# Values that are not credentials: truths, numbers, durations, words of a vocabulary, URLs and paths of files.
_HARMLESS = re.compile(
    r"(?:[a-z]+|[\d.]+|(?:\d+\s*[a-z]+\s*)+|[a-z][a-z0-9+.-]*://[^\s@?#]*|(?:[A-Za-z]:|[.~])?[/\\][^\s{}]*|"
    r"[^\s{}]*\.json)",
    re.ASCII,
)
_SECRET_NAME = re.compile(r"secret|token|password|signature|sas|key", re.IGNORECASE)
_PATH_NAME = re.compile(r"_file$|certificate|service_account$|credentials$|service_account_path$")

_ENVIRONMENT = re.compile(r"(?:AWS|AZURE|GOOGLE|UNITY|DATABRICKS)_")
_LONG_PART = re.compile(r"[A-Za-z0-9+/=_.~%-]{16,}")

# The user of a web server, user and password of others, and keys of S3, which may contain slashes.
_USER = re.compile(
    r"(?P<scheme>\bhttps?://)[^\s/?#'\"]*@"
    r"|(?P<other>\b[a-z][a-z0-9+.-]*://)[^\s/?#'\"@]*:[^\s/?#'\"]*@"
    r"|(?P<s3>\bs3[an]?://)[^\s/?#'\"]*:[^\s?#'\"]*@",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"(?P<name>[?&;](?:[\w.-]*(?:signature|token|credential|password|secret|key)|sig|pwd)=)[^&;#\s'\"<>]+",
    re.IGNORECASE,
)

_secrets: dict[str, None] = {}
_pattern: re.Pattern[str] | None = None


def remember_secrets(options: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Let `redact` mask the credentials among storage options and variables of the environment."""
    global _pattern
    settings = {name: value for name, value in environment.items() if _ENVIRONMENT.match(name)}
    found = [
        text
        for name, value in (*settings.items(), *options.items())
        if isinstance(name, str) and isinstance(value, str) and _is_secret(name.lower(), value)
        for text in _spellings(value)
        if len(text) >= SHORTEST_SECRET
    ]
    if all(text in _secrets for text in found):
        return
    _secrets.update(dict.fromkeys(found))
    for oldest in list(_secrets)[:-MOST_SECRETS]:
        del _secrets[oldest]
    # The longest first, so that no rest of a secret remains where another one is its beginning.
    _pattern = re.compile("|".join(map(re.escape, sorted(_secrets, key=len, reverse=True))))


def redact(text: str) -> str:
    """Return a text without credentials.

    Example:
        >>> redact("cannot read https://user:password@host/file?sig=abc")
        'cannot read https://***@host/file?sig=***'
    """
    if _pattern is not None:
        text = _pattern.sub(MASK, text)
    text = _USER.sub(lambda found: f"{found['scheme'] or found['other'] or found['s3']}{MASK}@", text)
    return _PARAMETER.sub(rf"\g<name>{MASK}", text)


def redact_location(uri: str) -> str:
    """Return a URI without password, query and fragment.

    Example:
        >>> redact_location("az://container/table?sv=1&sig=abc")
        'az://container/table?***'
    """
    text = redact(uri)
    end = re.search(r"[?#]", text) if "://" in text else None
    return text if end is None else f"{text[: end.end()]}{MASK}"


def redact_option(name: str, value: str) -> str:
    """Return `name=value` of a storage option without a credential."""
    return f"{name}={MASK if _is_secret(name.lower(), value) else value}"


def redact_error(error: BaseException | None) -> None:
    """Mask credentials in the texts of an error, its causes and its contexts."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        if (each := waiting.pop()) is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.args = tuple(redact(part) if isinstance(part, str) else part for part in each.args)
        if isinstance(each, OSError):
            for name in ("strerror", "filename", "filename2"):
                if isinstance(text := getattr(each, name, None), str):
                    setattr(each, name, redact(text))
        waiting += [each.__cause__, each.__context__]


def _is_secret(name: str, value: str) -> bool:
    is_harmless = _HARMLESS.fullmatch(value) is not None
    if _PUBLIC.fullmatch(name) and not re.search(r"://.*[@?]", value):
        return False
    if is_harmless and _PATH_NAME.search(name):
        return False
    return not is_harmless or _SECRET_NAME.search(name) is not None


def _spellings(value: str) -> Iterator[str]:
    """Yield a secret, and its parts, in the spellings of messages."""
    stripped = value.strip()
    yield from (stripped, quote(stripped, safe=""), quote(stripped), json.dumps(stripped)[1:-1])
    fields = _json_object(stripped)
    if fields is not None:
        for name, text in fields.items():
            if isinstance(text, str) and _is_secret(name.lower(), text):
                yield from _spellings(text)
        return
    yield from _LONG_PART.findall(stripped)
    # Fields of a shared access signature and of a connection string.
    yield from re.split(r"(?:^|[&;?])\w+=", stripped)
    if "://" in stripped:
        user = stripped.partition("://")[2].rpartition("@")[0]
        yield from (user, user.partition(":")[2])


def _json_object(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
