"""Implements `mq lag [GROUP]`: how far groups are behind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.asking import ask
from twisted_mq.cli.output import Row, json_line, print_table
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.servers import Servers

COLUMNS = ("group", "members", "topic", "lag", "inFlight", "behindSeconds")
OF_QUEUES = ("topic", "broker", "queueId", "committed", "end", "lag", "inFlight", "behindSeconds")


@click.command(short_help="Show how far consumer groups are behind.")
@click.argument("group", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@reaches_servers
def lag(group: str | None, as_json: bool, servers: Servers) -> None:
    """Without GROUP, print a row for each group and topic; with GROUP, a row for each queue.

    behindSeconds is the age of the newest consumed message. It is empty if the group is not behind, or consumed nothing.

    \b
    Example:
      mq lag audit
    """

    async def main(admin: AdminContext) -> tuple[tuple[str, ...], list[Row]]:
        return (COLUMNS, await rows(admin)) if group is None else (OF_QUEUES, await rows_of(admin, group))

    columns, found = ask(servers, main)
    if not as_json:
        print_table(columns, found)
        return
    for row in found:
        sys.stdout.write(json_line(dict(zip(columns, row, strict=True))))  # type: ignore[arg-type]


async def rows(admin: AdminContext) -> list[Row]:
    """Return each group's sums by topic, the furthest behind first. Groups that no broker knows about are left out."""
    from twisted_mq.admin.lag import groups_among, lag_by_topic

    found = [one for group in groups_among(await admin.topic_list()) for one in await lag_by_topic(admin, group)]
    ordered = sorted(found, key=lambda one: -one.waiting)
    return [(one.group, one.members, one.topic, one.waiting, one.in_flight, one.behind_seconds) for one in ordered]


async def rows_of(admin: AdminContext, group: str) -> list[Row]:
    """Return a row for each queue. Raises BrokerError if the group consumed nothing."""
    from twisted_mq.admin.groups import consume_stats
    from twisted_mq.admin.lag import queue_lags

    return [
        (
            one.queue.topic,
            one.queue.broker_name,
            one.queue.queue_id,
            one.committed,
            one.end,
            one.waiting,
            one.in_flight,
            one.behind_seconds,
        )
        for one in queue_lags(await consume_stats(admin, group), admin.now_ms())
    ]
