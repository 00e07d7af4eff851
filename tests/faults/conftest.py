"""An S3 server for the session, and a proxy in front of it that injects faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from buckets import Bucket, new_bucket, s3_server
from proxy import Proxy, proxy_to


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Return the endpoint of an S3 server."""
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint: str) -> Bucket:
    """Return a new bucket."""
    return new_bucket(s3_endpoint)


@pytest.fixture(scope="module")
def session_proxy(s3_endpoint: str) -> Iterator[Proxy]:
    with proxy_to(s3_endpoint) as proxy:
        yield proxy


@pytest.fixture
def proxy(session_proxy: Proxy) -> Proxy:
    """Return a proxy in front of the S3 server that injects no fault yet."""
    session_proxy.clear()
    return session_proxy


@pytest.fixture
def proxied(bucket: Bucket, proxy: Proxy) -> Bucket:
    """Return the new bucket with the endpoint of the proxy."""
    return Bucket(bucket.name, proxy.url)
