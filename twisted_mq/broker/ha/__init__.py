"""Replication of the commit log from a master to its slaves (Apache: org.apache.rocketmq.store.ha)."""
