"""Variant values: encoding, shredding and paths."""
