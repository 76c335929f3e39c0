"""Descriptors of a daemon: it takes as many as it may have, and half of them are for connections.

The other half is for files, see `storage.files.descriptors`, and for what the process opens now and then.
"""

from __future__ import annotations

from twisted_mq.storage.files.descriptors import descriptor_limit


def raise_descriptor_limit() -> None:
    """Take as many descriptors as the process may have (ulimit -Hn)."""
    try:
        import resource
    except ModuleNotFoundError:  # not a Unix
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS says "unlimited" and takes less
            return


def most_connections() -> int:
    """How many connections a server may hold."""
    return max(1, descriptor_limit() // 2)
