"""Scan planning and reading: prune files, row groups and pages, then read rows."""
