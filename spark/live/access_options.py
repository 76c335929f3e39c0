"""Options for the access to a cluster, the same for reading and writing."""

from __future__ import annotations

import re
from collections.abc import Mapping

from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.spark import option_values as values
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.cluster import Access
from twisted_mq.spark.live.connection import Dialling, split_address
from twisted_mq.spark.live.errors import PeerSilent
from twisted_mq.spark.named_options import Parsers, positive, take, text


def _addresses(name: str, value: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in re.split("[;,]", value) if part.strip()))
    for address in found:
        try:
            split_address(address)
        except PeerSilent as error:
            raise WrongOption(name, value, str(error)) from error
    if not found:
        raise WrongOption(name, value, "an address is needed, such as 127.0.0.1:9876; separate several with ;")
    return found


NAME_SERVER = "nameServer"
"""The option that selects brokers instead of the files of a store."""
_ACCESS: Parsers = {
    NAME_SERVER: ("name_servers", _addresses),
    "tries": ("tries", positive),
    "patienceSeconds": ("patience_seconds", values.number),
}
_DIALLING: Parsers = {
    "timeoutSeconds": ("timeout_seconds", positive),
    "tls": ("tls", values.truth),
    "tlsCaFile": ("tls_ca_file", text),
}
_CREDENTIALS: Parsers = {
    "accessKey": ("access_key", text),
    "secretKey": ("secret_key", text),
    "securityToken": ("security_token", text),
}
ACCESS_OPTIONS = (*_ACCESS, *_DIALLING, *_CREDENTIALS)


def access_of(known: Mapping[str, str], *, from_slaves: bool = False) -> Access:
    """Parse the access options. Raises WrongOption."""
    if NAME_SERVER not in known:
        raise WrongOption(NAME_SERVER, "", "the name server's address is needed, such as 127.0.0.1:9876")
    dialling = Dialling(credentials=_credentials(known), **take(known, _DIALLING))
    return Access(dialling=dialling, from_slaves=from_slaves, **take(known, _ACCESS))


def _credentials(known: Mapping[str, str]) -> Credentials | None:
    found = take(known, _CREDENTIALS)
    for name in ("accessKey", "secretKey"):
        if found and name not in known:
            raise WrongOption(name, "", "accessKey and secretKey are needed together")
    return Credentials(**found) if found else None
