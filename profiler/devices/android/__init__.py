"""Android phones: what is said to them, and what they say about themselves."""
