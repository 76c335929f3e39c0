"""Descriptors of a daemon: half of them are for connections.

The other half is for files, see `storage.files.descriptors`, and for what the process opens now and then.
"""

from __future__ import annotations

from twisted_mq.storage.files.system_calls import descriptor_limit, raise_descriptor_limit


def most_connections() -> int:
    """How many connections a server may hold; the process takes as many descriptors as it may have (ulimit -Hn) first."""
    raise_descriptor_limit()
    return max(1, descriptor_limit() // 2)
