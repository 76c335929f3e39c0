"""Coordinates brokers and clients through ZooKeeper, or a replacement in memory: nodes, sessions and watches."""
