"""Keeps the connected clients: producers, consumers, their subscriptions, locks and committed offsets."""
