"""Settings of a client that its producers and consumers share (Apache: ClientConfig)."""

from __future__ import annotations

import attrs


@attrs.frozen
class ClientOptions:
    """Times of a client, in seconds."""

    poll_name_server_seconds: float = 30
    heartbeat_seconds: float = 30
    persist_offsets_seconds: float = 5
    api_timeout_seconds: float = 3
    connect_timeout_seconds: float = 3
