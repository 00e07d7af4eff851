"""The door to `_delta_log`: snapshots out of it, commits into it (PROTOCOL.md, "Delta Log Entries").

`load_snapshot` parses; whether this library may read or write what it finds is for `features` to say.
"""

from .commits import CommitActions, read_commits, write_commit
from .listing import commit_file_name
from .loading import load_snapshot, refresh, table_exists, written_paths

__all__ = [
    "CommitActions",
    "commit_file_name",
    "load_snapshot",
    "read_commits",
    "refresh",
    "table_exists",
    "write_commit",
    "written_paths",
]
