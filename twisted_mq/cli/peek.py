"""Implements `mq peek TOPIC` and `mq tail TOPIC`: messages without a group; no group's position moves."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.asking import BEGINNINGS, ask, begin_of
from twisted_mq.cli.consume import writer
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.servers import Servers
    from twisted_mq.protocol.bodies import MessageQueue
    from twisted_mq.protocol.messages.message import MessageExt

PAUSE_SECONDS = 0.5
"""The pause between two reads of queues without new messages."""
TAGS = click.option(
    "--tags", default="*", show_default=True, help='Select only messages with these tags, such as "A || B".'
)
JSON = click.option(
    "--json", "form", flag_value="json", help="Print one JSON object per message, like `mq consume --json`."
)
RAW = click.option("--raw", "form", flag_value="raw", help="Print only the bodies, one per line.")


@click.command(short_help="Show messages of a topic without consuming them.")
@click.argument("topic")
@click.option("--from", "beginning", default="earliest", show_default=True, help=f"{BEGINNINGS}.")
@click.option(
    "--count", default=10, show_default=True, type=click.IntRange(1), help="Maximum number of messages from each queue."
)
@TAGS
@JSON
@RAW
@reaches_servers
def peek(topic: str, beginning: str, count: int, tags: str, form: str | None, servers: Servers) -> None:
    """Print messages of TOPIC, queue by queue, without joining a group.

    \b
    Examples:
      mq peek Orders --count 3
      mq peek Orders --from 2026-11-22T08:00 --json
    """

    async def main(admin: AdminContext) -> None:
        write = writer(form, sys.stdout)
        async for message in first_messages(admin, topic, beginning, count, tags):
            write(message)

    ask(servers, main)


@click.command(short_help="Follow new messages of a topic without consuming them.")
@click.argument("topic")
@click.option("--last", default=0, type=click.IntRange(0), help="Start with the last N messages of each queue.")
@TAGS
@JSON
@RAW
@reaches_servers
def tail(topic: str, last: int, tags: str, form: str | None, servers: Servers) -> None:
    """Print messages of TOPIC as they arrive, until Ctrl-C, without joining a group.

    \b
    Example:
      mq tail Orders --last 5
    """

    async def main(admin: AdminContext) -> None:
        write = writer(form, sys.stdout)
        async for message in new_messages(admin, topic, last, tags):
            write(message)

    ask(servers, main)


async def first_messages(
    admin: AdminContext, topic: str, beginning: str, count: int, tags: str = "*"
) -> AsyncIterator[MessageExt]:
    """Yield up to `count` messages of each queue from the beginning on, one queue after the other."""
    from twisted_mq.admin.queues import TopicReader

    reader = await TopicReader.of(admin, topic)
    for queue in reader.queues(topic):
        left = count
        first, end = await begin_of(reader, queue, beginning), await reader.max_offset(queue)
        async for result in reader.pulls(queue, first, end, tags):
            for message in result.messages[:left]:
                yield message
            left -= len(result.messages)
            if left <= 0:
                break


async def new_messages(admin: AdminContext, topic: str, last: int, tags: str = "*") -> AsyncIterator[MessageExt]:
    """Yield all messages that come from now on, after the last ones of each queue."""
    from twisted_mq.admin.queues import TopicReader

    reader = await TopicReader.of(admin, topic)
    places: dict[MessageQueue, int] = {}
    for queue in reader.queues(topic):
        places[queue] = max(await reader.min_offset(queue), await reader.max_offset(queue) - last)
    while True:
        came = False
        for queue, offset in places.items():
            result = await reader.pull(queue, offset, expression=tags)
            for message in result.messages:
                yield message
            came = came or result.next_begin_offset > offset
            places[queue] = max(offset, result.next_begin_offset)
        if not came:
            await admin.sleep(PAUSE_SECONDS)
