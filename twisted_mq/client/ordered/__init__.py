"""Producers and consumers of strictly ordered queues: one active sender and one active consumer a queue, others stand by."""
