"""A virtual Android phone over the real ADB transport."""
