"""A slave's log and queues."""
