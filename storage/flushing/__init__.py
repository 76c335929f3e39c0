"""Puts written data on disk, in its own threads."""
