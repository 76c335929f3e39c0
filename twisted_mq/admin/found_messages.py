"""Lookups of messages by id, key and offset id (Apache: MQAdminImpl), and of the traces that clients sent of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.groups import addresses_of, route_topic
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import QueryMessageRequestHeader, ViewMessageRequestHeader
from twisted_mq.protocol.layouts.message_id import MessageIdError, decode_offset_message_id
from twisted_mq.protocol.layouts.record_codec import decode_message, iterate_messages
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.trace import Trace, decode_traces
from twisted_mq.protocol.names.system_topics import is_lmq
from twisted_mq.remoting.errors import RemotingError

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""A field added to the header of QUERY_MESSAGE (Apache: MixAll.UNIQUE_MSG_QUERY_FLAG)."""

FOREVER_MS = (1 << 63) - 1
MOST_OF_A_KEY = 32
THREE_DAYS_MS = 3 * 24 * 3_600_000
QUERY_TIMEOUT_SECONDS = 15.0


async def view_message(admin: AdminCalls, topic: str, message_id: str) -> MessageExt:
    """Return the message of an offset id. Raises MessageIdError, BrokerError, RemotingError."""
    host, port, offset = decode_offset_message_id(message_id)
    header = ViewMessageRequestHeader(topic=topic, offset=offset)
    return decode_message((await admin.invoke(f"{host}:{port}", RequestCode.VIEW_MESSAGE_BY_ID, header)).body)


async def find_message(
    admin: AdminCalls, topic: str, message_id: str, cluster: str | None, *, known_brokers_alone: bool = False
) -> MessageExt:
    """Return the message of an offset id, else of a unique key of the last three days. Raises BrokerError if not found.

    Both kinds of ids look the same: a broker that the cluster does not know is asked only if no message has the key.
    With `known_brokers_alone`, such a broker is never asked.
    """
    if await _is_of_known_broker(admin, message_id):
        with contextlib.suppress(BrokerError, RemotingError):
            return await view_message(admin, topic, message_id)
    since = admin.now_ms() - THREE_DAYS_MS
    try:
        return (await messages_of_key(admin, topic, message_id, MOST_OF_A_KEY, since, FOREVER_MS, cluster, True))[0]
    except BrokerError as missing:
        if known_brokers_alone or missing.response_code != ResponseCode.NO_MESSAGE:
            raise
        return await _at_unknown_broker(admin, topic, message_id, missing)


async def _is_of_known_broker(admin: AdminCalls, message_id: str) -> bool:
    try:
        host, port, _ = decode_offset_message_id(message_id)
    except MessageIdError:
        return False
    brokers = ((await admin.cluster_info()).broker_addr_table or {}).values()
    return any(f"{host}:{port}" in (data.broker_addrs or {}).values() for data in brokers)


async def _at_unknown_broker(admin: AdminCalls, topic: str, message_id: str, missing: BrokerError) -> MessageExt:
    try:
        return await view_message(admin, topic, message_id)
    except (MessageIdError, BrokerError, RemotingError):
        raise missing from None


async def messages_of_key(
    admin: AdminCalls,
    topic: str,
    key: str,
    most: int,
    begin_ms: int,
    end_ms: int,
    cluster: str | None = None,
    is_unique_key: bool = False,
) -> list[MessageExt]:
    """Return the messages of a key at all brokers of a topic. Raises BrokerError if none is found."""
    route = await admin.topic_route(route_topic(topic, cluster))
    header = QueryMessageRequestHeader(
        topic=cluster if cluster and is_lmq(topic) else topic,
        key=key,
        max_num=most,
        begin_timestamp=begin_ms,
        end_timestamp=end_ms,
    )
    found: list[MessageExt] = []
    for address in addresses_of(route):
        found += [one for one in await _at_broker(admin, address, header, is_unique_key)
                  if has_key(one, topic, key, is_unique_key)]  # fmt: skip
    if not found:
        raise BrokerError(ResponseCode.NO_MESSAGE, "query message by key finished, but no message.")
    return found


async def _at_broker(
    admin: AdminCalls, address: str, header: QueryMessageRequestHeader, is_unique_key: bool
) -> list[MessageExt]:
    fields = {UNIQUE_KEY_QUERY: str(is_unique_key).lower()}
    try:
        answer = await admin.invoke(
            address, RequestCode.QUERY_MESSAGE, header, more_fields=fields, timeout_seconds=QUERY_TIMEOUT_SECONDS
        )
    except BrokerError as error:
        if error.response_code == ResponseCode.QUERY_NOT_FOUND:
            return []
        raise
    return list(iterate_messages(answer.body))


def has_key(message: MessageExt, topic: str, key: str, is_unique_key: bool) -> bool:
    """Return whether a message has the key: the index compares only hashes, and can return other messages."""
    if is_unique_key:
        return key in (message.unique_key, message.msg_id)
    return key in message.keys and (is_lmq(topic) or message.topic == topic)


Shown = tuple[Trace, str]
"""A trace and the host of its client."""


def traces_of(message: MessageExt, message_id: str) -> Iterator[Shown]:
    """Yield the traces of an id in a message of the trace topic, in the order in which the client wrote them."""
    host = message.born_host.rpartition(":")[0]
    for trace in decode_traces(message.body):
        if trace.msg_id == message_id:
            yield trace, host
