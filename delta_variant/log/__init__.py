"""The transaction log: read snapshots from `_delta_log`, and commit to it."""
