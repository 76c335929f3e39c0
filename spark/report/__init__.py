"""The report over one store."""
