"""The conformance kit: run Variant test cases against engines and grade the answers."""
