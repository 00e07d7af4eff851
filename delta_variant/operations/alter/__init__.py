"""Change the properties, columns and constraints of a table."""
