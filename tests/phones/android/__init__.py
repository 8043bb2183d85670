"""The Android side of a virtual phone."""
