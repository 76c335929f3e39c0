"""Settings of a client that its producers and consumers share (Apache: ClientConfig)."""

from __future__ import annotations

import attrs

from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.routing.errors import ClientOptionIllegal


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
    heartbeat_v2: bool = False
    """useHeartbeatV2: brokers that know it are sent the subscriptions only once, then their fingerprint."""
    access_key: str | None = None
    """The user that requests are signed for; with secret_key. AclClientRPCHook"""
    secret_key: str | None = attrs.field(default=None, repr=False)
    security_token: str | None = attrs.field(default=None, repr=False)

    @property
    def credentials(self) -> Credentials | None:
        """What requests are signed with; None where they are not. Raises ClientOptionIllegal for half of it."""
        if not self.access_key and not self.secret_key:
            return None
        if not self.access_key or not self.secret_key:
            raise ClientOptionIllegal("access_key and secret_key are needed both, or none of them")
        return Credentials(self.access_key, self.secret_key, self.security_token)
