"""Write, read and inspect one Parquet file at a time."""
