"""Producers and consumers of strictly ordered queues: one active sender and consumer a queue, others are on standby."""
