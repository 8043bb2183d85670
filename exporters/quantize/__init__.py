"""Weights in fewer bits: the number formats, and applying them to a network; no runtime is known here."""
