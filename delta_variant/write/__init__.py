"""Write data files: state of the table, rules of its rows, partitions, copy on write, commits."""
