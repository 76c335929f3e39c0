"""`mq bench`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.cli.asking import ask
from twisted_mq.cli.bench.times import COLUMNS
from twisted_mq.cli.errors import CliError, report
from twisted_mq.cli.output import json_line, print_table
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.bench.load import Arrivals, Plan
    from twisted_mq.cli.servers import Servers
    from twisted_mq.client import PushConsumer

GROUP = "mq_bench"
TOPIC = "MqBench"
MOST_MESSAGES = 10_000_000
MOST_SECONDS = 3600
IDLE_SECONDS = 10.0
"""The time after which consumers without new messages are given up."""
LOOPBACKS = ("127.", "localhost:", "[::1]", "::1")


@click.command(short_help="Measure throughput and latency of a cluster.")
@click.argument("topic", default=TOPIC)
@click.option(
    "--count",
    default=10_000,
    show_default=True,
    type=click.IntRange(1, MOST_MESSAGES),
    help="Maximum number of messages.",
)
@click.option(
    "--seconds",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0.1, MOST_SECONDS),
    help="Maximum duration in seconds.",
)
@click.option(
    "--rate", default=0.0, type=click.FloatRange(0), help="Maximum number of messages per second.  [default: no limit]"
)
@click.option(
    "--size", default=128, show_default=True, type=click.IntRange(1, 4 << 20), help="Size of a message body in bytes."
)
@click.option(
    "--in-flight",
    default=32,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Maximum number of sends in flight.",
)
@click.option(
    "--batch", default=1, show_default=True, type=click.IntRange(1, 1000), help="Number of messages in one send."
)
@click.option("--consumers", default=0, show_default=True, type=click.IntRange(0, 64), help="Number of consumers.")
@click.option("--yes", is_flag=True, help="Allow servers that are not on this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@reaches_servers
def bench(
    topic: str,
    count: int,
    seconds: float,
    rate: float,
    size: int,
    in_flight: int,
    batch: int,
    consumers: int,
    yes: bool,
    as_json: bool,
    servers: Servers,
) -> None:
    """Send to TOPIC and print sends per second and their latency; with --consumers also the latency of delivery.

    With --rate latency counts from the time when a send was due, so that a pause of the server is not hidden by sends that
    waited. The messages stay in TOPIC until they expire.

    \b
    Examples:
      mq bench --count 5000 --consumers 1
      mq bench --rate 1000 --seconds 10 --size 1024 --json
    """
    from twisted_mq.cli.bench.load import Plan

    plan = Plan(topic, count, seconds, size, in_flight, batch, rate)
    if not yes:
        check_here(servers.addresses)
    rows = ask(servers, lambda admin: run(admin, plan, consumers, yes))
    if not as_json:
        print_table(COLUMNS, rows)
        return
    for row in rows:
        sys.stdout.write(json_line({**dict(zip(COLUMNS, row, strict=True)), "plan": attrs.asdict(plan)}))  # type: ignore[arg-type]


def check_here(addresses: Sequence[str]) -> None:
    """Check that all addresses are of this machine. Raises CliError."""
    away = [address for address in addresses if not address.startswith(LOOPBACKS)]
    if away:
        raise CliError(f"{away[0]} is not on this machine", "add --yes to send the load there")


async def run(admin: AdminContext, plan: Plan, consumers: int, yes: bool) -> list[list[object]]:
    """Return one row for the sends, another for the consumed messages. Raises the error of the first send."""
    from twisted_mq.admin.groups import addresses_of
    from twisted_mq.admin.sending import started_producer
    from twisted_mq.cli.bench.load import Arrivals, Load
    from twisted_mq.client import Message

    assert admin.reactor is not None
    mark = f"{admin.now_ms():x}"
    async with started_producer(admin, GROUP) as producer:
        if not yes:
            check_here(
                [
                    one
                    for topic in await _known(admin, plan.topic)
                    for one in addresses_of(await admin.topic_route(topic))
                ]
            )
        await producer.send(Message(plan.topic, b"the topic is there"))
        arrivals = Arrivals(admin.reactor, mark)
        started = await _consumers(admin, plan.topic, arrivals, consumers)
        try:
            load = Load(admin.reactor, producer, plan, mark)
            seconds = await load.send()
            rows = [load.sent.row("sent", seconds)]
            if started:
                await arrivals.wait(load.sent.messages, IDLE_SECONDS, admin.sleep)
                rows.append(arrivals.consumed.row("consumed", arrivals.last - load.began))
        finally:
            for consumer in started:
                await consumer.stop(finish_seconds=0)
    for name, number in load.sent.errors.items():
        report("mq bench", f"{number} sends failed: {name}")
    return rows


async def _known(admin: AdminContext, topic: str) -> list[str]:
    """Return the topic if it exists, and otherwise the topic whose settings a new one gets."""
    from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC

    known = await admin.topic_list()
    return [name for name in (topic, AUTO_CREATE_TOPIC) if name in known][:1]


async def _consumers(admin: AdminContext, topic: str, arrivals: Arrivals, count: int) -> list[PushConsumer]:
    """Return started members of one group, moved to the end of the topic."""
    from twisted_mq.cli.group_positions import put_group
    from twisted_mq.client import PushConsumer

    assert admin.reactor is not None
    if count:
        await put_group(admin, GROUP, topic, "latest")
    options = None if admin.client_options is None else admin.client_options()
    started = []
    for _ in range(count):
        consumer = PushConsumer(admin.reactor, GROUP, admin.name_servers, client_options=options)
        consumer.subscribe(topic, "*")
        consumer.listen(arrivals)
        await consumer.start()
        started.append(consumer)
    return started
