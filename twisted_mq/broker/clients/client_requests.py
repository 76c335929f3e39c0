"""The requests that a broker sends to connected consumers: 220, 221, 307, 309 (Apache: Broker2Client)."""

from __future__ import annotations

from collections.abc import Generator

from twisted.internet import defer

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.producer_manager import ClientChannelInfo
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import (
    GetConsumerStatusBody,
    MessageQueue,
    MessageQueueForC,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.headers import GetConsumerStatusRequestHeader, ResetOffsetRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.errors import RemotingError, RemotingTimeoutError

CALL_SECONDS = 10.0
STATUS_SECONDS = 5.0
MOST_ASKED_AT_ONCE = 64
RESET_BYTES = 1 << 20
RESET_OVERHEAD = 10_000
"""The time that one more request takes apart from its body, given as the bytes that could be written in that time."""
CPP = "CPP"

log = Logger()


def online_client(consumers: ConsumerManager, group: str, client_id: str | None) -> ClientChannelInfo:
    """Return a consumer of a group by its id. Raises BrokerError if no consumer with that id is connected."""
    info = consumers.groups.get(group)
    for client in info.clients.values() if info is not None else ():
        if client.client_id == client_id:
            return client
    raise BrokerError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")


def ready_client(consumers: ConsumerManager, group: str, client_id: str | None) -> ClientChannelInfo:
    """Return a connected consumer that takes requests. Raises BrokerError if it is still behind with earlier requests."""
    client = online_client(consumers, group, client_id)
    if not client.channel.takes_requests:
        remark = f"invoke consumer <{group}> <{client_id}> Exception: it has not read earlier frames"
        raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
    return client


async def call_consumer(
    consumers: ConsumerManager, request: RemotingCommand, group: str, client_id: str | None
) -> RemotingCommand:
    """Forward a request to a consumer and return the consumer's answer. Raises BrokerError if no answer comes."""
    client = ready_client(consumers, group, client_id)
    passed_on = RemotingCommand.request(request.code, dict(request.ext_fields), request.body)
    try:
        answer = await client.channel.send_request(passed_on, CALL_SECONDS)
    except RemotingTimeoutError as error:
        remark = f"consumer <{group}> <{client_id}> Timeout: {error}"
        raise BrokerError(ResponseCode.CONSUME_MSG_TIMEOUT, remark) from error
    except RemotingError as error:
        remark = f"invoke consumer <{group}> <{client_id}> Exception: {error}"
        raise BrokerError(ResponseCode.SYSTEM_ERROR, remark) from error
    return request.answer(answer.code, answer.remark, dict(answer.ext_fields), answer.body)


def push_reset(
    consumers: ConsumerManager, header: ResetOffsetRequestHeader, offsets: dict[MessageQueue, int]
) -> Generator[None, None, None]:
    """Tell all consumers of a group to continue at these offsets (220, one-way), in slices of RESET_BYTES.

    A consumer that has not taken earlier requests is not told; the log names it. Raises BrokerError if the group has no
    consumers.
    """
    info = consumers.groups.get(header.group)
    if info is None:
        raise BrokerError(
            ResponseCode.CONSUMER_NOT_ONLINE,
            "Consumer not online, so can not reset offset,"
            f" Group: {header.group} Topic: {header.topic} Timestamp: {header.timestamp}",
        )
    fields = encode_header(
        ResetOffsetRequestHeader(
            topic=header.topic, group=header.group, timestamp=header.timestamp, is_force=header.is_force
        )
    )
    bodies = {False: encode_body(ResetOffsetBody(offset_table=offsets)), True: encode_body(_for_cpp(offsets))}
    written = 0
    for client in tuple(info.clients.values()):
        if written > RESET_BYTES:
            written = 0
            yield None
        body = bodies[client.language == CPP]
        written += RESET_OVERHEAD + len(body)
        takes_it = client.channel.takes_requests
        client.channel.send_one_way(RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body))
        tell = log.info if takes_it else log.warn
        tell(
            "consumer {told} of the reset: group={group} topic={topic} client={client}",
            told="told" if takes_it else "not notified (it has not read earlier frames)",
            group=header.group, topic=header.topic, client=client.client_id,
        )  # fmt: skip


def _for_cpp(offsets: dict[MessageQueue, int]) -> ResetOffsetBodyForC:
    """Return the body for C++ clients, which cannot read objects as keys."""
    queues = [
        MessageQueueForC(topic=queue.topic, broker_name=queue.broker_name, queue_id=queue.queue_id, offset=offset)
        for queue, offset in offsets.items()
    ]
    return ResetOffsetBodyForC(offset_table=queues)


async def consumer_status(
    consumers: ConsumerManager, topic: str, group: str, client_id: str | None
) -> dict[str, dict[MessageQueue, int]]:
    """Return the offsets of each consumer of a group on a topic, by client id (221). With `client_id`, ask only that consumer.

    Consumers that do not answer are left out and logged. Raises BrokerError if no consumer is connected.
    """
    info = consumers.groups.get(group)
    if info is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{group}]")
    fields = encode_header(GetConsumerStatusRequestHeader(topic=topic, group=group))
    clients = [one for one in info.clients.values() if not client_id or one.client_id == client_id]
    tables: dict[str, dict[MessageQueue, int]] = {}
    left = iter(clients)

    async def ask_some() -> None:
        """Ask consumers one after the other, until all consumers are asked or being asked."""
        for client in left:
            request = RemotingCommand.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, fields)
            try:
                table = _status_of(await client.channel.send_request(request, STATUS_SECONDS))
            except RemotingError:
                table = None
            if table is not None:
                tables[client.client_id] = table
            else:
                log.warn(
                    "consumer returned no status: group={group} client={client}", group=group, client=client.client_id
                )

    await defer.gatherResults([defer.ensureDeferred(ask_some()) for _ in range(MOST_ASKED_AT_ONCE)])
    return {client.client_id: tables[client.client_id] for client in clients if client.client_id in tables}


def _status_of(answer: RemotingCommand) -> dict[MessageQueue, int] | None:
    if answer.code != ResponseCode.SUCCESS or not answer.body:
        return None
    try:
        return dict(decode_body(GetConsumerStatusBody, answer.body).message_queue_table)
    except ProtocolError as error:
        log.warn("status of a consumer cannot be read: {error}", error=error)
        return None
