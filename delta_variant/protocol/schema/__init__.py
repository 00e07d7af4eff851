"""The schema of a table: its JSON form, its Arrow form, and its validity."""
