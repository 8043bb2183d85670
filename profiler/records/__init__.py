"""Frozen, closed, keyword-only records: what is written to disk and sent over the wire."""
