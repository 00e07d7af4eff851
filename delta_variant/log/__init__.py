"""The door to `_delta_log`: snapshots out of it, commits into it (PROTOCOL.md, "Delta Log Entries").

`load_snapshot` parses; whether this library may read or write what it finds is for `features` to say.
"""

from .checkpoint_reading import statistics_twice
from .checkpoint_writing import write_checkpoint
from .checksum import checksum_discrepancies
from .commits import CommitActions, read_commits, write_commit
from .listing import commit_file_name
from .loading import load_snapshot, refresh, table_exists

__all__ = [
    "CommitActions",
    "checksum_discrepancies",
    "commit_file_name",
    "load_snapshot",
    "read_commits",
    "refresh",
    "statistics_twice",
    "table_exists",
    "write_checkpoint",
    "write_commit",
]
