"""Settings of a client that its producers and consumers share (Apache: ClientConfig)."""

from __future__ import annotations

import attrs


@attrs.frozen
class ClientOptions:
    """Defaults are Apache's. Times in seconds."""

    poll_name_server_seconds: float = 30
    heartbeat_seconds: float = 30
    persist_offsets_seconds: float = 5
    api_timeout_seconds: float = 3
    connect_timeout_seconds: float = 3
    address_server_domain: str = ""
    """rocketmq.namesrv.domain: where a page lists the name servers, asked where neither namesrv nor NAMESRV_ADDR is given."""
    address_server_subgroup: str = "nsaddr"
    """rocketmq.namesrv.domain.subgroup"""
    address_server_seconds: float = 120
    """How often the page is asked again."""
    unit_name: str = ""
    """unitName: part of the page's address and of the client's id."""
