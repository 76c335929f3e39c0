"""Putting what was written on disk, in threads of its own."""
