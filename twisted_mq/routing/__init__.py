"""Routes of topics, and the assignment of queues to members: shared by client and broker."""
