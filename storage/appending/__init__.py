"""Turns messages into records and queue entries: the store's hot path."""
