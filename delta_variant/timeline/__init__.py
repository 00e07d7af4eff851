"""What happened to a table, and how it comes back to what it was."""

from .entries import HistoryEntry, history

__all__ = ["HistoryEntry", "history"]
