"""A whole cluster inside the process of a test: `from twisted_mq.testing import EmbeddedCluster`."""

from typing import TYPE_CHECKING

from twisted_mq.extras import require

require("twisted_mq.testing", "broker")

from twisted_mq.testing.cluster import EmbeddedCluster  # noqa: E402 - its imports need the extra

if TYPE_CHECKING:
    from twisted_mq.testing.ordered_cluster import OrderedCluster

__all__ = ["EmbeddedCluster", "OrderedCluster"]


def __getattr__(name: str) -> object:
    """Who has no ordered topics does not load what they need."""
    if name != "OrderedCluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from twisted_mq.testing.ordered_cluster import OrderedCluster

    return OrderedCluster
