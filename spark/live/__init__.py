"""Live queues for Spark: a small blocking reader of brokers, the batch and stream readers on it. No reactor, no Twisted."""
