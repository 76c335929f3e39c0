"""`mq lag [GROUP]`: how far groups are behind."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.asking import NAMESRV, ask
from twisted_mq.cli.output import Row, json_line, print_table

if TYPE_CHECKING:
    from twisted_mq.cli.admin.calls import AdminContext

COLUMNS = ("group", "members", "topic", "lag", "inFlight", "behindSeconds")
OF_QUEUES = ("topic", "broker", "queueId", "committed", "end", "lag", "inFlight", "behindSeconds")


@click.command(short_help="Show how far consumer groups are behind.")
@click.argument("group", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row.")
@NAMESRV
def lag(group: str | None, as_json: bool, namesrv: str) -> None:
    """Without GROUP a row for each group and topic, with it one for each queue.

    behindSeconds is the age of the newest message that was consumed, empty where nothing is behind or nothing was consumed.

    \b
    Example:
      mq lag audit
    """

    async def main(admin: AdminContext) -> tuple[tuple[str, ...], list[Row]]:
        return (COLUMNS, await rows(admin)) if group is None else (OF_QUEUES, await rows_of(admin, group))

    columns, found = ask(namesrv, main)
    if not as_json:
        print_table(columns, found)
        return
    for row in found:
        sys.stdout.write(json_line(dict(zip(columns, row, strict=True))))  # type: ignore[arg-type]


async def rows(admin: AdminContext) -> list[Row]:
    """Each group's sums by topic, what is furthest behind first. Groups that no broker can tell of are left out."""
    from twisted_mq.cli.admin.groups import consume_stats, consumer_connection, group_of
    from twisted_mq.protocol.errors import ProtocolError
    from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
    from twisted_mq.remoting.errors import RemotingError

    found: list[Row] = []
    groups = {group_of(topic) for topic in await admin.topic_list() if topic.startswith(RETRY_PREFIX)}
    for group in sorted(groups):
        members = 0
        with contextlib.suppress(ProtocolError, RemotingError):
            members = len((await consumer_connection(admin, group)).connection_set)
        with contextlib.suppress(ProtocolError):
            table = (await consume_stats(admin, group)).offset_table
            for topic in sorted({queue.topic for queue in table}):
                of_topic = [offset for queue, offset in table.items() if queue.topic == topic]
                waiting = sum(one.broker_offset - one.consumer_offset for one in of_topic)
                in_flight = sum(one.pull_offset - one.consumer_offset for one in of_topic)
                behind = [
                    _behind(one.last_timestamp, admin) for one in of_topic if one.broker_offset > one.consumer_offset
                ]
                known = [seconds for seconds in behind if seconds is not None]
                found.append((group, members, topic, waiting, in_flight, max(known, default=None)))
    return sorted(found, key=lambda row: -int(str(row[3])))


async def rows_of(admin: AdminContext, group: str) -> list[Row]:
    """A row a queue. Raises BrokerError where the group consumed nothing."""
    from twisted_mq.cli.admin.groups import consume_stats

    table = (await consume_stats(admin, group)).offset_table
    return [
        (
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            one.consumer_offset,
            one.broker_offset,
            one.broker_offset - one.consumer_offset,
            one.pull_offset - one.consumer_offset,
            _behind(one.last_timestamp, admin) if one.broker_offset > one.consumer_offset else None,
        )
        for queue, one in sorted(table.items())
    ]


def _behind(timestamp_ms: int, admin: AdminContext) -> int | None:
    return max(0, (admin.now_ms() - timestamp_ms) // 1000) if timestamp_ms > 0 else None
