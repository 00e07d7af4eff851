"""Compact, sort and shred the files of a table again."""
