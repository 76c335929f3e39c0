"""A slave's side of the log and the queues."""
