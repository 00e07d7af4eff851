"""Write data files: changes of the table, rules of its rows, partitions, copy on write, commits."""
