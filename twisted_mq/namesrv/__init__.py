"""Implements the name server: which brokers live, which queues a topic has, and a key-value configuration."""
