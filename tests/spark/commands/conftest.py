"""Stores written by the broker's code, for features that the small writer of tests does not have."""

from tests.storage.conftest import clock, known_topics, open_store

__all__ = ["clock", "known_topics", "open_store"]
