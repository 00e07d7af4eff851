"""SQL expressions: parse, bind to a schema, and evaluate over Arrow batches."""
