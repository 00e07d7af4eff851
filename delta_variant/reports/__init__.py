"""Reports of tables and runs as text and HTML pages: audits, the explorer, the conformance kit."""
