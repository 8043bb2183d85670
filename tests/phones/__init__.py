"""Virtual phones: they speak the wire protocol of a real one, and what they measure is known."""
