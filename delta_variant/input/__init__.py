"""Read what a caller passes: Arrow data, Python objects, and files of JSON, Parquet or CSV."""
