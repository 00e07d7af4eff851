"""The commands, one module for each group; `..app` registers them."""
