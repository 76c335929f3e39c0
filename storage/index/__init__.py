"""The index by key."""
