"""Counts what the broker does."""
