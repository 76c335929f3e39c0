"""Routes of topics and who takes which queues: what client and broker share."""
