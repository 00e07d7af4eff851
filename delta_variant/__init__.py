"""Variant columns in Delta Lake tables."""
