"""SQL queries on one machine: expressions are evaluated by this package, relations by DuckDB."""
