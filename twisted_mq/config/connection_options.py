"""Defines settings that every server has: how much the peers of its connections may hold. Apache's servers have no such keys."""

from __future__ import annotations

import attrs

from twisted_mq.config.options import option

MIB = 1 << 20


@attrs.define(kw_only=True)
class ConnectionOptions:
    """Limits of what one connection, and all together, may make a server keep."""

    # what connections may hold

    max_incomplete_bytes: int = option(
        256 * MIB,
        "bytes of incomplete frames; above it the connection with the oldest frame is closed; ours",
        type="long",
        low=MIB,
    )
    max_unsent_bytes: int = option(
        512 * MIB,
        "bytes of unread answers; above it the connection with the most is closed; ours",
        type="long",
        low=MIB,
    )
    max_unsent_bytes_by_channel: int = option(
        64 * MIB,
        "bytes of unread answers of one connection; above it the connection is closed; ours",
        type="long",
        low=MIB,
    )
    max_held_bytes: int = option(
        512 * MIB,
        "bytes of requests that wait for an answer, plus 3072 for each; above it SYSTEM_BUSY; ours",
        type="long",
        low=MIB,
    )
    max_held_bytes_by_channel: int = option(64 * MIB, "the same for one connection; ours", type="long", low=MIB)
    max_held_requests: int = option(110_000, "requests that wait for an answer; above it SYSTEM_BUSY; ours", low=1)
    max_held_requests_by_channel: int = option(
        11_000,
        "the same for one connection; a consumer holds one pull for each queue; ours",
        low=1,
    )
    max_remembered_bytes: int = option(
        256 * MIB,
        "bytes of names and subscriptions stored for open connections; above it SYSTEM_BUSY; ours",
        type="long",
        low=MIB,
    )
    max_remembered_bytes_by_channel: int = option(
        4 * MIB, "the same for one connection; ours", type="long", low=64 * 1024
    )
