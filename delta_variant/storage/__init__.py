"""Object stores and local files that hold tables."""
