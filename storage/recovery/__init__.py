"""Making a store sound before it serves."""
