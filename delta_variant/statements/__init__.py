"""Queries of Spark SQL: their parts, and how they are rewritten over what a reader can extract and select."""
