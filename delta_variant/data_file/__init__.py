"""Write, read and inspect the Parquet files of a table."""
