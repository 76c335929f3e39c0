"""Writing to topics from Spark, batch and stream: rows as messages, in batched sends, at least once."""
