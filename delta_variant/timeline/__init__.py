"""What happened to a table, and how it comes back to what it was."""

from .entries import HistoryEntry, history
from .restoring import Restoration, restore

__all__ = ["HistoryEntry", "Restoration", "history", "restore"]
