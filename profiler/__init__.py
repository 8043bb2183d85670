"""Measure what an image model costs on a device, and judge whether it can ship there."""

__version__ = "0.1.0"
