"""The operations on a table, one module or package for each."""
