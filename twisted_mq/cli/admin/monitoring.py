"""Implements `mqadmin startMonitoring` (Apache: MonitorService): each minute, waiting messages of all groups, and
members' problems.

Apache's tool writes to its log; here the lines are printed. It runs until it is interrupted.
"""

from __future__ import annotations

from collections import defaultdict

from twisted_mq.admin.groups import consume_stats, consumer_connection, group_of, running_info, same_subscriptions
from twisted_mq.admin.queues import TopicReader
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_text import fields_text
from twisted_mq.cli.admin.running_text import complaints
from twisted_mq.protocol.bodies import Connection, ConsumerRunningInfo, MessageQueue, OffsetWrapper
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.remoting.errors import RemotingError

PREFIX, NOTIFY = "[MONITOR] ", "[MONITOR]  [NOTIFY] "
ROUND_SECONDS = 60.0
"""The interval of rounds (MonitorConfig.roundInterval)."""
RULE = "=" * 41

Offsets = dict[MessageQueue, OffsetWrapper]


async def start_monitoring(admin: AdminContext, line: CommandLine) -> None:
    while True:
        await monitor_once(admin)
        await admin.sleep(ROUND_SECONDS)


async def monitor_once(admin: AdminContext) -> None:
    """Run one round over all groups; skip those that cannot be asked."""
    admin.say(f"{PREFIX}{RULE}beginRound", event="beginRound", time=admin.now_ms())
    for topic in await admin.topic_list():
        if topic.startswith(RETRY_PREFIX):
            try:
                await _look_at(admin, group_of(topic))
            except (ProtocolError, RemotingError):
                continue
    admin.say(f"{PREFIX}{RULE}endRound", event="endRound", time=admin.now_ms())


async def _look_at(admin: AdminContext, group: str) -> None:
    stats = await consume_stats(admin, group)
    members = (await consumer_connection(admin, group)).connection_set
    by_topic: defaultdict[str, Offsets] = defaultdict(dict)
    for queue, offset in stats.offset_table.items():
        by_topic[queue.topic][queue] = offset
    for topic in sorted(by_topic):
        await _report_undone(admin, group, topic, by_topic[topic])
    await _report_members(admin, group, members)


async def _report_undone(admin: AdminContext, group: str, topic: str, offsets: Offsets) -> None:
    lags = [offset.broker_offset - offset.consumer_offset for offset in offsets.values()]
    total, most = sum(lag for lag in lags if lag > 0), max([0, *lags])
    delay_ms = await _delay_ms(admin, topic, offsets)
    text = fields_text(
        "UndoneMsgs ",
        "[]",
        consumerGroup=group,
        topic=topic,
        undoneMsgsTotal=total,
        undoneMsgsSingleMQ=most,
        undoneMsgsDelayTimeMills=delay_ms,
    )
    admin.say(
        f"{PREFIX}reportUndoneMsgs: {text}",
        event="undone", group=group, topic=topic, total=total, singleQueue=most, delayMs=delay_ms,
    )  # fmt: skip


async def _delay_ms(admin: AdminContext, topic: str, offsets: Offsets) -> int:
    """Return the longest time between the last message of a queue and the last one that was consumed."""
    reader, delays = await TopicReader.of(admin, topic), [0]
    for queue, offset in offsets.items():
        if offset.last_timestamp > 0 and offset.broker_offset > 0:
            last = await reader.pull(queue, offset.broker_offset - 1, 1)
            delays += [message.store_timestamp - offset.last_timestamp for message in last.messages]
    return max(delays)


async def _report_members(admin: AdminContext, group: str, members: list[Connection]) -> None:
    infos: dict[str, ConsumerRunningInfo] = {}
    for member in members:
        infos[member.client_id] = await running_info(admin, group, member.client_id)
    head = f"{NOTIFY}reportConsumerRunningInfo: ConsumerGroup: {group}, "
    if infos and not same_subscriptions(infos, admin.now_ms()):
        admin.say(f"{head}Subscription different", event="subscriptions", group=group)
    for client_id in sorted(infos):
        for text in complaints(client_id, infos[client_id], admin.now_ms()):
            admin.say(f"{head}ClientId: {client_id}, {text}", event="complaint", group=group, complaint=text)
