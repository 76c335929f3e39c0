"""`mqadmin topicRoute` (Apache: TopicRouteSubCommand)."""

from __future__ import annotations

import json

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import map_text, pretty_json
from twisted_mq.protocol.bodies import QueueData, TopicRouteData, encode_body, to_value
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
