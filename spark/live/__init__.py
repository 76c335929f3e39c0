"""Live queues for Spark: a small blocking client of brokers, and batch and stream readers that use it. No reactor, no Twisted."""
