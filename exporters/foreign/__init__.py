"""Graphs that came from elsewhere, taken as they are: each format opens its own, and all become bundles in one way."""
