"""The operations on tables, one module or package for each."""
