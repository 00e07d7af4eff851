"""Compact and sort the files of a table, and shred its Variants again."""
