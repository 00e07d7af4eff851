"""Views: the files of a table as plain typed Parquet, for readers that know neither Delta nor Variant."""
