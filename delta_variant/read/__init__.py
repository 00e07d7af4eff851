"""Read a table: bind queries, plan, prune files, row groups and pages, then read rows."""
