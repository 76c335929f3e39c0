"""Consume queues: the places in the log of the messages of one topic and queue id."""
