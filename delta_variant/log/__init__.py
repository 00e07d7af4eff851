"""The door to `_delta_log`: snapshots out of it, commits into it (PROTOCOL.md, "Delta Log Entries").

`load_snapshot` parses; whether this library may read or write what it finds is for `features` to say.
"""

from .checkpoint_reading import statistics_twice
from .checkpoint_writing import write_checkpoint
from .checksum import checksum_discrepancies
from .commits import (
    CommitActions,
    commit_file_time,
    read_all_commits,
    read_commit_info,
    read_commits,
    read_next_commits,
    read_versions,
    write_commit,
)
from .listing import commit_file_name
from .loading import table_exists
from .snapshots import load_protocol_and_metadata, load_snapshot, load_with_tombstones, refresh
from .timestamps import CommitTimes, Timestamp, from_milliseconds, version_at, version_from

__all__ = [
    "CommitActions",
    "CommitTimes",
    "Timestamp",
    "checksum_discrepancies",
    "commit_file_name",
    "commit_file_time",
    "from_milliseconds",
    "load_protocol_and_metadata",
    "load_snapshot",
    "load_with_tombstones",
    "read_all_commits",
    "read_commit_info",
    "read_commits",
    "read_next_commits",
    "read_versions",
    "refresh",
    "statistics_twice",
    "table_exists",
    "version_at",
    "version_from",
    "write_checkpoint",
    "write_commit",
]
