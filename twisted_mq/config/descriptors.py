"""Divides a daemon's descriptors: half of them are for connections.

The other half is for files, see `storage.files.descriptors`, and for what the process opens now and then.
"""

from __future__ import annotations

from twisted_mq.storage.files.system_calls import descriptor_limit, raise_descriptor_limit


def most_connections() -> int:
    """Return how many connections a server may hold, after raising the process's limit of descriptors to its maximum
    (ulimit -Hn).
    """
    raise_descriptor_limit()
    return max(1, descriptor_limit() // 2)
