"""Commits of given actions, without the conflict checks of a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from delta_variant.log import commits
from delta_variant.protocol.actions import Action, AddFile, RemoveFile, encode_commit
from delta_variant.storage.store import Store


def commit_actions(store: Store, version: int, actions: Sequence[Action]) -> None:
    """Commit a version of some actions."""
    others = [action for action in actions if not isinstance(action, (AddFile, RemoveFile))]
    commits.write_commit(store, version, encode_commit(actions), others)
