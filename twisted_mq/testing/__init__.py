"""A whole cluster inside the process of a test: `from twisted_mq.testing import EmbeddedCluster`."""

from twisted_mq.extras import require

require("twisted_mq.testing", "broker")

from twisted_mq.testing.cluster import EmbeddedCluster  # noqa: E402 - its imports need the extra

__all__ = ["EmbeddedCluster"]
