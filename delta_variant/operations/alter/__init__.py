"""Change the properties, columns, column types and constraints of a table."""
