"""Checkpoint files: read and write them."""
