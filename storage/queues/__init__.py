"""Consume queues: where in the log the messages of one topic and queue id lie."""
