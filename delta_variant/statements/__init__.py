"""Statements of Spark SQL that change, maintain or show a table; each is a call of an operation."""
