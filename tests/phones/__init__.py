"""Virtual phones: a hidden physical truth behind vendor gauges, reached over the real transports."""
