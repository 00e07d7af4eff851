"""The metadata domain of clustered tables (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

import msgspec

from ..errors import MalformedLogError
from .actions import CLUSTERING_DOMAIN

__all__ = ["NO_CLUSTERING", "decode_clustering_columns"]

NO_CLUSTERING = f'{{"clusteringColumns":[],"domainName":"{CLUSTERING_DOMAIN}"}}'
"""The configuration of the domain in a table that is no longer clustered, as delta-spark writes it."""


class _Clustering(msgspec.Struct, rename="camel"):
    clustering_columns: list[str | list[str]] = []


def decode_clustering_columns(configuration: str) -> tuple[tuple[str, ...], ...]:
    """Return the physical paths of the clustering columns in a domain's configuration.

    The example in PROTOCOL.md has a string for each column. Delta on Spark, delta-kernel-java and
    delta-kernel-rs write a list of names instead, which can also lead to a nested column. Both are accepted.

    Raises:
        MalformedLogError: The configuration has neither form.
    """
    try:
        columns = msgspec.json.decode(configuration, type=_Clustering).clustering_columns
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedLogError(f"cannot decode the domain {CLUSTERING_DOMAIN}: {error}") from error
    return tuple((each,) if isinstance(each, str) else tuple(each) for each in columns)
