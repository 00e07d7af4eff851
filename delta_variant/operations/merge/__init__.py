"""Merge a source into a table."""
