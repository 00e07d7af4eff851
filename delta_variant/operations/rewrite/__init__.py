"""Shared code of delete, update, merge and optimize."""
