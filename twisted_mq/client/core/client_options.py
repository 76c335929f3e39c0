"""Settings of a client that its producers and consumers share (Apache: ClientConfig)."""

from __future__ import annotations

import attrs

from twisted_mq.client.core.option_checks import kind, number
from twisted_mq.encryption.settings import ClientSettings
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.routing.errors import ClientOptionIllegal


@attrs.frozen
class ClientOptions:
    """Options of a client. Defaults are Apache's. Times are in seconds."""

    poll_name_server_seconds: float = attrs.field(default=30, validator=number(0.01))
    heartbeat_seconds: float = attrs.field(default=30, validator=number(0.01))
    persist_offsets_seconds: float = attrs.field(default=5, validator=number(0.01))
    api_timeout_seconds: float = attrs.field(default=3, validator=number(0.01))
    connect_timeout_seconds: float = attrs.field(default=3, validator=number(0.01))
    address_server_domain: str = attrs.field(default="", validator=kind(str))
    """rocketmq.namesrv.domain: the server of a page that lists the name servers.

    It is used if neither namesrv nor NAMESRV_ADDR is given.
    """
    address_server_subgroup: str = attrs.field(default="nsaddr", validator=kind(str))
    """rocketmq.namesrv.domain.subgroup"""
    address_server_seconds: float = attrs.field(default=120, validator=number(0.01))
    """The page is read again at this interval."""
    unit_name: str = attrs.field(default="", validator=kind(str))
    """unitName: part of the page's address and of the client's id."""
    namespace_v2: str = attrs.field(default="", validator=kind(str))
    """namespaceV2: requests carry this namespace, and topics and groups keep their names. (`namespace` is a prefix of them.)"""
    heartbeat_v2: bool = attrs.field(default=False, validator=kind(bool))
    """useHeartbeatV2: brokers that support it get the subscriptions only once, then their fingerprint."""
    access_key: str | None = attrs.field(default=None, validator=kind(str, type(None)))
    """The user that requests are signed for; needs secret_key (AclClientRPCHook)."""
    secret_key: str | None = attrs.field(default=None, repr=False, validator=kind(str, type(None)))
    security_token: str | None = attrs.field(default=None, repr=False, validator=kind(str, type(None)))
    tls_enable: bool = attrs.field(default=False, validator=kind(bool))
    """tls.enable: encrypt connections."""
    tls_auth_server: bool = attrs.field(default=True, validator=kind(bool))
    """Require a server certificate signed by a CA in tls_trust_cert_path, or by one that the machine trusts. Apache's: false."""
    tls_check_host: bool = attrs.field(default=True, validator=kind(bool))
    """Require a certificate for the host that is connected to, by name or address. Apache's clients do not check it."""
    tls_trust_cert_path: str | None = attrs.field(default=None, validator=kind(str, type(None)))
    tls_cert_path: str | None = attrs.field(default=None, validator=kind(str, type(None)))
    """The client certificate, for servers that request one; needs tls_key_path."""
    tls_key_path: str | None = attrs.field(default=None, validator=kind(str, type(None)))
    tls_key_password: str | None = attrs.field(default=None, repr=False, validator=kind(str, type(None)))

    @property
    def tls(self) -> ClientSettings | None:
        """The encryption of connections; None if tls_enable is off."""
        if not self.tls_enable:
            return None
        return ClientSettings(
            cert_path=self.tls_cert_path,
            key_path=self.tls_key_path,
            key_password=self.tls_key_password,
            auth_server=self.tls_auth_server,
            trust_cert_path=self.tls_trust_cert_path,
            check_host=self.tls_check_host,
        )

    @property
    def credentials(self) -> Credentials | None:
        """The credentials that sign requests; None without keys. Raises ClientOptionIllegal if only one key is set."""
        if not self.access_key and not self.secret_key:
            return None
        if not self.access_key or not self.secret_key:
            raise ClientOptionIllegal("access_key and secret_key must be given together")
        return Credentials(self.access_key, self.secret_key, self.security_token)
