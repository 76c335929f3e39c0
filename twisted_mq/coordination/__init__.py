"""What brokers and clients agree on through ZooKeeper, and a twin of it in memory: nodes, sessions and watches."""
