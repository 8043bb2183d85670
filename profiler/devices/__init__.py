"""Devices: where a runner is started, and how the host talks to it."""
