"""Consuming messages."""
