"""Stores that the broker's own code writes, for what the small writer of tests has not."""

from tests.storage.conftest import clock, known_topics, open_store

__all__ = ["clock", "known_topics", "open_store"]
