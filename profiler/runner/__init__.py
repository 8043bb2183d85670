"""The Python runner: a program of its own that obeys plans, times them and keeps a journal."""
