"""From a message to its record and its queue entry: the store's hot path."""
