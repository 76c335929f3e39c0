"""The store's twin in memory."""
