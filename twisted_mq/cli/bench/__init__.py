"""Implements `mq bench`: a bounded load on a cluster, and the times of its answers."""
