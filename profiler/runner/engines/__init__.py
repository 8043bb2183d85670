"""Inference runtimes behind one small interface."""
