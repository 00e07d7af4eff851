"""The functions of the commands, one module for each group; `..app` registers them."""
