"""Implements `mqadmin brokerConsumeStats`, `statsAll`: how much is consumed, how much waits."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.admin.calls import TIMEOUT_SECONDS
from twisted_mq.admin.groups import addresses_of, consume_stats, total_lag
from twisted_mq.admin.statistics import counted
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import date_text, fixed
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.cli.output import progress
from twisted_mq.protocol.bodies import (
    ConsumeStatsList,
    MessageQueue,
    OffsetWrapper,
    decode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import GetConsumeStatsInBrokerHeader
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX
from twisted_mq.protocol.text.json_value import Json
from twisted_mq.remoting.errors import RemotingError

QUEUES = TextTable.of(
    "{:<64.64}  {:<64}  {:<32.32}  {:<4}  {:<20}  {:<20}  {:<20}  {}",
    topic="#Topic",
    group="#Group",
    broker="#Broker Name",
    queueId="#QID",
    brokerOffset="#Broker Offset",
    consumerOffset="#Consumer Offset",
    diff="#Diff",
    lastTime="#LastTime",
)
TOPICS = TextTable(
    "{:<64}  {:<64} {:>12} {:>11} {:>11} {:>14} {:>14}".format(
        "#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour", "#OutMsg24Hour"
    ),
    "{:<64.64}  {:<64.64} {:>12} {:>11} {:>11} {:>14} {:>14}",
    ("topic", "consumerGroup", "accumulation", "inTps", "outTps", "in24Hours", "out24Hours"),
)

DEFAULT_TIMEOUT_MS = 50_000


async def broker_consume_stats(admin: AdminContext, line: CommandLine) -> None:
    header = GetConsumeStatsInBrokerHeader(is_order=line.is_true("o"))
    timeout_seconds = max(TIMEOUT_SECONDS, line.number("t", DEFAULT_TIMEOUT_MS) / 1000)
    answer = await admin.invoke(
        line.value("b"), RequestCode.GET_BROKER_CONSUME_STATS, header, timeout_seconds=timeout_seconds
    )
    stats = decode_body(ConsumeStatsList, answer.body)
    admin.say(QUEUES.head)
    for by_group in stats.consume_stats_list:
        for group, parts in by_group.items():
            for part in parts:
                _rows(admin, group, part.offset_table, line.number("l", 0))
    admin.say(f"\nDiff Total: {stats.total_diff}", diffTotal=stats.total_diff)


def _rows(admin: AdminContext, group: str, table: Mapping[MessageQueue, OffsetWrapper], least: int) -> None:
    for queue in sorted(table):
        offset = table[queue]
        lag = offset.broker_offset - offset.consumer_offset
        if lag >= least and offset.last_timestamp > 0:
            last = date_text(offset.last_timestamp)
            admin.row(QUEUES, queue.topic, group, queue.broker_name, queue.queue_id,
                      offset.broker_offset, offset.consumer_offset, lag, last)  # fmt: skip


async def stats_all(admin: AdminContext, line: CommandLine) -> None:
    wanted, only_active = line.value("t"), "a" in line
    admin.say(TOPICS.head)
    names = [name for name in await admin.topic_list() if not name.startswith((RETRY_PREFIX, DLQ_PREFIX))]
    chosen = [name for name in names if not wanted or name == wanted]
    with progress("topics", len(chosen), hidden=len(chosen) < 10) as advance:
        for topic in chosen:
            try:
                await _show_topic(admin, topic, only_active)
            except (ProtocolError, RemotingError) as error:
                admin.warn(f"{topic}: {error}")
            advance(1)


async def _show_topic(admin: AdminContext, topic: str, only_active: bool) -> None:
    """Show a row for each group of a topic, or one row for a topic without groups."""
    route = await admin.topic_route(topic)
    addresses = addresses_of(route)
    groups = await admin.consumer_groups(addresses[0], topic) if addresses else []
    sent = await counted(admin, route, "TOPIC_PUT_NUMS", topic)
    if not groups and (sent.in_a_day or not only_active):
        line = TOPICS.line([topic, "", 0, fixed(sent.rate, 2), "", sent.in_a_day, "NO_CONSUMER"])
        admin.say_value(line, TOPICS.value([topic, None, 0, sent.rate, None, sent.in_a_day, None]))
    for group in groups:
        taken = await counted(admin, route, "GROUP_GET_NUMS", f"{topic}@{group}")
        if not only_active or sent.in_a_day or taken.in_a_day:
            row: list[Json] = [
                topic,
                group,
                await _lag(admin, group, topic),
                sent.rate,
                taken.rate,
                sent.in_a_day,
                taken.in_a_day,
            ]
            texts = [fixed(value, 2) if isinstance(value, float) else value for value in row]
            admin.say_value(TOPICS.line(texts), TOPICS.value(row))


async def _lag(admin: AdminContext, group: str, topic: str) -> int:
    try:
        return max(0, total_lag(await consume_stats(admin, group, topic)))
    except (ProtocolError, RemotingError):
        return 0
