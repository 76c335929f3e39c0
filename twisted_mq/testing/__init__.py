"""Provides a broker for tests: in the test's process, in memory, or in virtual time. Nothing is loaded before it is used.

from twisted_mq.testing import EmbeddedServer
"""

import importlib
from typing import TYPE_CHECKING

from twisted_mq.extras import require

if TYPE_CHECKING:
    from twisted_mq.testing.cluster import EmbeddedCluster
    from twisted_mq.testing.ordered_cluster import OrderedCluster
    from twisted_mq.testing.server import BrokerMixin, EmbeddedServer
    from twisted_mq.testing.virtual_cluster import VirtualCluster

__all__ = ["BrokerMixin", "EmbeddedCluster", "EmbeddedServer", "OrderedCluster", "VirtualCluster"]

_HOMES = {
    "BrokerMixin": "server",
    "EmbeddedCluster": "cluster",
    "EmbeddedServer": "server",
    "OrderedCluster": "ordered_cluster",
    "VirtualCluster": "virtual_cluster",
}


def __getattr__(name: str) -> object:
    """Load a name at its first use: pytest imports this package with the fixtures, even if no test uses them. Raises
    MissingExtra.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("twisted_mq.testing", "broker")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
