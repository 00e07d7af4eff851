"""Say what a table or JSON files have, path by path."""
