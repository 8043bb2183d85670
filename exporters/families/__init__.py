"""The architectures that can be exported, one module each."""
