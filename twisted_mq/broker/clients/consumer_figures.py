"""Asks connected consumers in turns for the rates of their own work (307; rocketmq-exporter: ClientMetricTaskRunnable)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeAlias

from twisted.internet import defer

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import ConsumerRunningInfo, ConsumeStatus, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.headers import GetConsumerRunningInfoRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Channel
from twisted_mq.remoting.errors import RemotingError

ASK_SECONDS = 15.0
"""The interval at which all consumers are asked (rocketmq-exporter: 15 s, too)."""

ANSWER_SECONDS = 2.0
MOST_AT_ONCE = 16
MOST_CONSUMERS = 500
MOST_ROWS = 10_000
"""The limit of the rows of all consumers together, one for each topic: about 5 MiB."""

MOST_BODY_BYTES = 256 * 1024
"""The longest answer, of about 700 queues, which takes 45 ms to parse."""

AskedConsumer: TypeAlias = tuple[str, Channel, str]
"""Group, connection, client id."""
Told: TypeAlias = dict[tuple[AskedConsumer, str], ConsumeStatus]
"""The reported rates, by consumer and topic."""


class ConsumerFigures:
    """Rates of connected consumers by topic, as reported in the last whole turn; empty before the first turn ends.

    Only topics for which `is_topic` holds are kept. A consumer that reports nothing has no row, is logged once, and is
    asked again.
    """

    log = Logger()

    def __init__(self, consumers: ConsumerManager, is_topic: Callable[[str], bool]) -> None:
        self._consumers = consumers
        self._is_topic = is_topic
        self._told: Told = {}
        self._silent: set[AskedConsumer] = set()
        self._are_too_many = False

    def rows(self) -> list[tuple[tuple[str, str, str, str], ConsumeStatus]]:
        """Return address, client id, group and topic, with the rates; only of consumers that are still connected."""
        return [
            ((channel.address, client_id, group, topic), status)
            for ((group, channel, client_id), topic), status in self._told.items()
            if self._is_connected((group, channel, client_id))
        ]

    async def ask(self) -> None:
        """Run one turn. It is over when each consumer has answered, or its time is up."""
        connected = (
            (info.group, channel, client.client_id)
            for info in self._consumers.groups.values()
            for channel, client in info.clients.items()
        )
        members = list(itertools.islice(connected, MOST_CONSUMERS + 1))
        told: Told = {}
        silent: set[AskedConsumer] = set()
        to_ask = iter(members[:MOST_CONSUMERS])
        askers = [defer.ensureDeferred(self._ask_some(to_ask, told, silent)) for _ in range(MOST_AT_ONCE)]
        await defer.gatherResults(askers, consumeErrors=True)
        self._told, self._silent = told, silent
        self._note_bounds(len(members) > MOST_CONSUMERS or len(told) == MOST_ROWS)

    async def _ask_some(self, to_ask: Iterator[AskedConsumer], told: Told, silent: set[AskedConsumer]) -> None:
        """Ask consumers one after the other that no other such loop has taken."""
        for member in to_ask:
            try:
                statuses = await _statuses(member)
            except (RemotingError, ProtocolError) as error:
                if self._is_connected(member):
                    silent.add(member)
                    self._note_silent(member, error)
                continue
            known = ((topic, status) for topic, status in statuses.items() if self._is_topic(topic))
            told.update(((member, topic), status) for topic, status in itertools.islice(known, MOST_ROWS - len(told)))

    def _is_connected(self, member: AskedConsumer) -> bool:
        group, channel, client_id = member
        info = self._consumers.groups.get(group)
        client = info.clients.get(channel) if info is not None else None
        return client is not None and client.client_id == client_id

    def _note_silent(self, member: AskedConsumer, error: Exception) -> None:
        if member not in self._silent:
            group, channel, client_id = member
            self.log.info(
                "consumer reports no metrics: group={group} client={client} peer={peer} {error}",
                group=group, client=client_id, peer=channel.address, error=error,
            )  # fmt: skip

    def _note_bounds(self, are_too_many: bool) -> None:
        if are_too_many and not self._are_too_many:
            self.log.warn(
                "metrics only of the first {consumers} consumers and {rows} of their topics",
                consumers=MOST_CONSUMERS, rows=MOST_ROWS,
            )  # fmt: skip
        self._are_too_many = are_too_many


async def _statuses(member: AskedConsumer) -> dict[str, ConsumeStatus]:
    """Ask a consumer for its rates, by topic. Raises RemotingError, ProtocolError."""
    group, channel, client_id = member
    fields = encode_header(GetConsumerRunningInfoRequestHeader(consumer_group=group, client_id=client_id))
    request = RemotingCommand.request(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
    answer = await channel.send_request(request, ANSWER_SECONDS)
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark or "")
    if len(answer.body) > MOST_BODY_BYTES:
        raise ProtocolError(f"an answer of {len(answer.body)} bytes")
    return decode_body(ConsumerRunningInfo, answer.body).status_table
