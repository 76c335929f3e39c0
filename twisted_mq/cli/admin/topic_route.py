"""`mqadmin topicRoute`, `topicStatus`: a topic's queues and their offsets. Logical queues of static topics are not added."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping

from twisted_mq.admin.calls import select_address
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import map_text, pretty_json, time_text
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import MessageQueue, QueueData, TopicOffset, TopicRouteData, encode_body, to_value
from twisted_mq.protocol.text.fastjson import dumps, loads
from twisted_mq.protocol.text.json_value import Json

RULE = "-" * 158


async def topic_route(admin: AdminContext, line: CommandLine) -> None:
    route = await admin.topic_route(line.value("t"))
    text = "\n".join(table(route)) if "l" in line else json_text(route)
    admin.say_value(text, json_value(route))


def json_text(route: TopicRouteData) -> str:
    """Return the route as Apache's tool prints it: JSON with tabs, broker ids unquoted."""
    return pretty_json(loads(encode_body(route)))


def json_value(route: TopicRouteData) -> dict[str, Json]:
    """Return the route with all keys as text."""
    value: dict[str, Json] = json.loads(dumps(to_value(route), standard=True))
    return value


def _row(*columns: object) -> str:
    return "{:<45} {:<32} {:<50} {:<10} {:<11} {:<5}".format(*map(str, columns))


def table(route: TopicRouteData) -> list[str]:
    """Return a line for each broker, sorted by name, and the sums."""
    queues = {queue.broker_name: queue for queue in route.queue_datas or ()}
    lines = [_row("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")]
    reads = writes = 0
    for broker in sorted(route.broker_datas or (), key=lambda data: data.broker_name):
        queue = queues.get(broker.broker_name, QueueData())
        reads += queue.read_queue_nums
        writes += queue.write_queue_nums
        addresses = map_text(broker.broker_addrs or {})
        lines.append(
            _row(
                broker.cluster,
                broker.broker_name,
                addresses,
                queue.read_queue_nums,
                queue.write_queue_nums,
                queue.perm,
            )
        )
    return [*lines, RULE, _row("Total:", len(queues), "", reads, writes, "")]


HEAD = f"{'#Broker Name':<32}  {'#QID':<4}  {'#Min Offset':<20}  {'#Max Offset':<20}    #Last Updated"


async def topic_status(admin: AdminContext, line: CommandLine) -> None:
    topic = line.value("t")
    route = await admin.topic_route(line.value("c") if "c" in line else topic)
    offsets: dict[MessageQueue, TopicOffset] = {}
    for broker in route.broker_datas or ():
        address = select_address(broker.broker_addrs)
        if address is not None:
            offsets.update((await admin.topic_stats(address, topic)).offset_table or {})
    if not offsets and "c" not in line:
        raise CliError(f"no broker reports offsets for topic {topic}", "check `mqadmin topicRoute -t {topic}`")
    if admin.as_json:
        _say_values(admin, offsets)
    else:
        admin.echo("\n".join(lines(offsets)))


def _say_values(admin: AdminContext, offsets: Mapping[MessageQueue, TopicOffset]) -> None:
    for queue in sorted(offsets):
        offset = offsets[queue]
        admin.say(
            None,
            broker=queue.broker_name,
            queueId=queue.queue_id,
            minOffset=offset.min_offset,
            maxOffset=offset.max_offset,
            lastUpdated=offset.last_update_timestamp,
        )


def lines(offsets: Mapping[MessageQueue, TopicOffset], zone: datetime.tzinfo | None = None) -> list[str]:
    """Return the table, sorted by broker and queue. The rate below it is always 0.0, because Apache sums no rates over
    brokers.
    """
    ordered = sorted(offsets, key=lambda queue: (queue.topic, queue.broker_name, queue.queue_id))
    rows = [_queue_row(queue, offsets[queue], zone) for queue in ordered]
    return [HEAD, *rows, "", "Topic Put TPS: 0.0"]


def _queue_row(queue: MessageQueue, offset: TopicOffset, zone: datetime.tzinfo | None) -> str:
    updated = time_text(offset.last_update_timestamp, zone) if offset.last_update_timestamp > 0 else ""
    return (
        f"{queue.broker_name[:32]:<32}  {queue.queue_id:<4d}  {offset.min_offset:<20d}  {offset.max_offset:<20d}"
        f"    {updated}"
    )
