"""Requests that change a running broker: its settings and its write permission."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from twisted_mq.protocol.wire.header_codec import decode_header


async def change_settings(admin: AdminCalls, address: str, changes: Mapping[str, str]) -> None:
    """Change settings of a broker. This project's broker changes all or none. Raises BrokerError if it refuses."""
    await admin.invoke(address, RequestCode.UPDATE_BROKER_CONFIG, body=_properties(changes))


def _properties(changes: Mapping[str, str]) -> bytes:
    """Encode lines of a properties file. Line ends and backslashes are escaped: a line end would begin another key."""
    escaped = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
    return "".join(f"{key}={value.translate(escaped)}\n" for key, value in changes.items()).encode()


async def wipe_write_permission(admin: AdminCalls, name_server: str, broker_name: str) -> int:
    """Remove a broker's write permission at a name server: clients stop sending to it. Return the number of its topics."""
    header = WipeWritePermOfBrokerRequestHeader(broker_name=broker_name)
    answer = await admin.invoke(name_server, RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
    return decode_header(WipeWritePermOfBrokerResponseHeader, answer).wipe_topic_count


async def add_write_permission(admin: AdminCalls, name_server: str, broker_name: str) -> int:
    """Restore a broker's write permission at a name server. Return the number of its topics."""
    header = AddWritePermOfBrokerRequestHeader(broker_name=broker_name)
    answer = await admin.invoke(name_server, RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
    return decode_header(AddWritePermOfBrokerResponseHeader, answer).add_topic_count
