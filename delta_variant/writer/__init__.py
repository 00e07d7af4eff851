"""Write data files: read input, partition rows, check constraints, copy on write, record changes."""
