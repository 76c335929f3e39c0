"""Makes a store sound before it serves."""
