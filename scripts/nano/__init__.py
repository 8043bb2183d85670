"""Nano: the project's own tiny text-to-image and instruction-edit model, from procedural scenes to scored weights."""
