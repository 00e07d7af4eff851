"""The attempts of one commit: the waits between them, and when to give up.

Writers do not know of each other, so they wait for random times. The bound of the wait doubles with each lost
race, which relieves the store, and shrinks with the square of the time since the first one, which lets the
writers that have waited longest commit before others.
"""

from __future__ import annotations

from random import Random
from time import monotonic, sleep

from .._logging import get_logger
from ..errors import CommitConflictError, CommitUnknownError
from ..storage.store import Store
from .listing import commit_file_name

_LOGGER = get_logger(__name__)

MAX_ATTEMPTS = 1000
DEADLINE_SECONDS = 600.0
HIDDEN_ATTEMPTS = 10
"""How often a commit is tried while the store answers that its version exists, but does not return it."""

SHORTEST_WAIT = 0.01
LONGEST_WAIT = 0.64
WARNED_SECONDS = 30.0


class CommitAttempts:
    """Counts the lost races of a commit, and waits after each."""

    def __init__(self, store: Store, txn_id: str) -> None:
        self._store = store
        self._txn_id = txn_id
        self._lost = self._hidden = 0
        self._start = monotonic()
        self._next_warning = WARNED_SECONDS

    def lose(self, version: int, *, is_hidden: bool) -> None:
        """Wait after an attempt to commit a version that exists.

        Args:
            version: The version.
            is_hidden: Whether the store does not return the commit that has the version.

        Raises:
            CommitUnknownError: If the store keeps answering so, because the commit may be this one.
            CommitConflictError: After too many attempts, or too long.
        """
        self._lost += 1
        self._hidden = self._hidden + 1 if is_hidden else 0
        waited = monotonic() - self._start
        is_last = self._lost >= MAX_ATTEMPTS or waited >= DEADLINE_SECONDS
        if is_hidden and (is_last or self._hidden == HIDDEN_ATTEMPTS):
            raise self._unknown(version)
        if is_last:
            raise CommitConflictError(
                f"cannot commit to {self._store.uri} within {self._lost} attempts and {waited:.0f} seconds "
                "because other writers committed first each time; retry when fewer writers are active",
                table=self._store.uri,
                version=version,
            )
        if waited >= self._next_warning:
            self._next_warning = 2 * waited
            _LOGGER.warning(
                "%s: other writers committed first %d times in %.0f s, retrying",
                self._store.uri,
                self._lost,
                waited,
            )
        sleep(self._pause(waited))

    def _pause(self, waited: float) -> float:
        growing = SHORTEST_WAIT * 2 ** min(self._lost - 1, 10)
        longest: float = min(growing, LONGEST_WAIT / (1 + waited) ** 2)
        return Random(f"{self._txn_id} {self._lost}").uniform(0, longest)

    def _unknown(self, version: int) -> CommitUnknownError:
        name = f"{self._store.uri}/{commit_file_name(version)}"
        return CommitUnknownError(
            f"cannot determine whether version {version} is this commit because the store answers that "
            f"{name} exists, but does not return it; check that the credentials permit reading the log, and "
            "check the table before retrying",
            table=self._store.uri,
            version=version,
        )
