"""The scalar functions of SQL by subject, with the semantics of Spark in ANSI mode."""
