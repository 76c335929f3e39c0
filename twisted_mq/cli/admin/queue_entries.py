"""Implements `mqadmin queryCq` (Apache: QueryConsumeQueueCommand): entries of a consume queue."""

from __future__ import annotations

import json
from typing import cast

from twisted_mq.admin.groups import addresses_of
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import pretty_json, text_or_null
from twisted_mq.cli.admin.java_text import fields_text
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import ConsumeQueueData, QueryConsumeQueueResponseBody, to_value
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import QueryConsumeQueueRequestHeader
from twisted_mq.protocol.text.fastjson import dumps
from twisted_mq.protocol.text.json_value import Json

RULE = "=" * 38
DEFAULT_COUNT = 10


async def query_cq(admin: AdminContext, line: CommandLine) -> None:
    index = line.number("i", 0)
    header = QueryConsumeQueueRequestHeader(
        topic=line.value("t"),
        queue_id=line.number("q", 0),
        index=index,
        count=line.number("c", DEFAULT_COUNT),
        consumer_group=line.value("g") or None,
    )
    address = line.value("b") or await _first_broker(admin, line.value("t"))
    found = await admin.ask(address, QueryConsumeQueueResponseBody, RequestCode.QUERY_CONSUME_QUEUE, header)
    admin.say_value("\n".join(entry_lines(found, index)), json.loads(dumps(to_value(found), standard=True)))


async def _first_broker(admin: AdminContext, topic: str) -> str:
    addresses = addresses_of(await admin.topic_route(topic))
    if not addresses:
        raise CliError("No topic route data!")
    return addresses[0]


def entry_lines(found: QueryConsumeQueueResponseBody, index: int) -> list[str]:
    """Return the subscription and filter, the ends of the queue, and each entry."""
    lines: list[str] = []
    if found.subscription_data is not None:
        lines += ["Subscription data: ", pretty_json(cast(Json, to_value(found.subscription_data))), RULE]
    if found.filter_data is not None:
        lines += ["Filter data: ", found.filter_data, RULE]
    lines += ["Queue data: ", f"max: {found.max_queue_index}, min: {found.min_queue_index}", RULE]
    for number, entry in enumerate(found.queue_data or (), index):
        lines += [f"idx: {number}", entry_text(entry), RULE]
    return lines


def entry_text(entry: ConsumeQueueData) -> str:
    """Return the text of Apache's ConsumeQueueData."""
    return fields_text(
        "ConsumeQueueData",
        "{}",
        physicOffset=entry.physic_offset,
        physicSize=entry.physic_size,
        tagsCode=entry.tags_code,
        extendDataJson=f"'{text_or_null(entry.extend_data_json)}'",
        bitMap=f"'{text_or_null(entry.bit_map)}'",
        eval=entry.eval,
        msg=f"'{text_or_null(entry.msg)}'",
    )
