"""Queries of Spark SQL: parse, rewrite and run them over what tasks extract and select."""
