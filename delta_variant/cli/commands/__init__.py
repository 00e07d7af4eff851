"""The commands, one module for each group. `..app` lists each command."""
