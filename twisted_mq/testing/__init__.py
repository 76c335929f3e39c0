"""A whole cluster inside the process of a test: `from twisted_mq.testing import EmbeddedCluster`."""

from twisted_mq.testing.cluster import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
