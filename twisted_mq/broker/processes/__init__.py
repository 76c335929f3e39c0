"""Runs several brokers of one cluster as child processes of one supervisor, each with a core of its own."""
