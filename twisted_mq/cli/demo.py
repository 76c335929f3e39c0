"""Implements `mq demo`: everything once, with real messages: servers, client library, and the Spark report on the store's
files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import Row, print_table

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.client import ConsumeStatus, Message, Producer, PushConsumer
    from twisted_mq.protocol.messages.message import MessageExt

ORDERS_TOPIC = "DemoOrders"
METRICS_TOPIC = "DemoMetrics"
TAGS = ("created", "paid", "shipped")
BATCH_MESSAGES = 32
IN_FLIGHT = 64
LOG_FILE_BYTES = 8 * 1024 * 1024
LIMIT_SECONDS = 60.0
"""The time after which the demo fails if its messages have not come back."""


@attrs.frozen
class Sends:
    """The results of one way of sending: how many messages got each status."""

    what: str
    topic: str
    statuses: Counter[str]
    seconds: float


@attrs.frozen
class Figures:
    """The measurements between the start of the servers and the last message."""

    sends: tuple[Sends, ...]
    received: Counter[str]
    consume_seconds: float


@click.command(short_help="Run servers, clients and the report once, and print the results.")
@click.option("--messages", default=3000, show_default=True, type=click.IntRange(1), help="Single sends.")
@click.option("--out", default="out/demo", show_default=True, help="Write the report to this directory.")
@click.option("--report/--no-report", default=True, help="Run the Spark report on the store.")
def demo(messages: int, out: str, report: bool) -> None:
    """Start a name server and a broker on free ports, send and consume, then report on the store's files.

    \b
    Example:
      mq demo --messages 10000
    """
    from twisted_mq.cli.logs import log_to_stderr
    from twisted_mq.cli.run import run_under_reactor
    from twisted_mq.extras import require

    if report:
        require("mq demo", "spark")
    log_to_stderr(verbose=False)
    with tempfile.TemporaryDirectory(prefix="mq-demo-") as folder:
        store = os.path.join(folder, "store")
        click.echo(f"store                {store} (temporary)")
        figures = run_under_reactor(lambda reactor: run_demo(reactor, store, messages))
        print_figures(figures)
        check_figures(figures, messages)
        if report:
            run_report(store, os.path.abspath(out))


async def run_demo(reactor: IReactorTime, store: str, messages: int) -> Figures:
    """Start servers, send messages through them, and stop them."""
    from twisted_mq.testing import EmbeddedCluster

    began = reactor.seconds()
    cluster = EmbeddedCluster(reactor, store, broker_options={"mapped_file_size_commit_log": LOG_FILE_BYTES})
    await cluster.start()
    click.echo(f"name server          {cluster.name_server}")
    click.echo(f"broker               {cluster.broker_address}, ready after {reactor.seconds() - began:.2f} s")
    try:
        return await _exchange(reactor, cluster.name_server, messages)
    finally:
        await cluster.stop()


async def _exchange(reactor: IReactorTime, name_server: str, messages: int) -> Figures:
    from twisted_mq.client.producing.producer import Producer

    producer = Producer(reactor, "demo_producer", name_server)
    await producer.start()
    try:
        sends = (await _send_singly(reactor, producer, messages), await _send_batches(reactor, producer, messages))
        received, consume_seconds = await _receive(reactor, name_server, expected(messages))
    finally:
        await producer.stop()
    return Figures(sends, received, consume_seconds)


def expected(messages: int) -> Counter[str]:
    """Return how many messages each group has to get."""
    paid = len(range(TAGS.index("paid"), messages, len(TAGS)))
    return Counter({"demo_audit": messages + batches_for(messages) * BATCH_MESSAGES, "demo_paid": paid})


def batches_for(messages: int) -> int:
    """Return how many batches are sent in addition to that many single messages."""
    return messages // 10 // BATCH_MESSAGES + 1


async def _send_singly(reactor: IReactorTime, producer: Producer, messages: int) -> Sends:
    """Send one message per request, with several requests in flight."""
    from twisted.internet.defer import gatherResults

    began = reactor.seconds()
    statuses: Counter[str] = Counter()
    for start in range(0, messages, IN_FLIGHT):
        numbers = range(start, min(start + IN_FLIGHT, messages))
        results = await gatherResults([producer.send(order(number)) for number in numbers], consumeErrors=True)
        statuses.update(result.status.name for result in results)
    return Sends("sent singly", ORDERS_TOPIC, statuses, reactor.seconds() - began)


async def _send_batches(reactor: IReactorTime, producer: Producer, messages: int) -> Sends:
    """Send several messages per request, one request after another."""
    began = reactor.seconds()
    statuses: Counter[str] = Counter()
    for batch in range(batches_for(messages)):
        result = await producer.send_batch([metric(batch, number) for number in range(BATCH_MESSAGES)])
        statuses[result.status.name] += BATCH_MESSAGES
    return Sends(f"sent in batches of {BATCH_MESSAGES}", METRICS_TOPIC, statuses, reactor.seconds() - began)


def order(number: int) -> Message:
    """Return one order event, with a tag and a key; every tenth has a body large enough to be compressed."""
    from twisted_mq.client.core.message import Message

    filler = "line item; " * (500 if number % 10 == 0 else number % 7)
    body = f'{{"order":{number},"note":"{filler}"}}'.encode()
    return Message(ORDERS_TOPIC, body, TAGS[number % len(TAGS)], f"order-{number}")


def metric(batch: int, number: int) -> Message:
    from twisted_mq.client.core.message import Message

    return Message(METRICS_TOPIC, f"load {batch}.{number}".encode(), "load", properties={"host": f"node-{number % 4}"})


async def _receive(reactor: IReactorTime, name_server: str, wanted: Counter[str]) -> tuple[Counter[str], float]:
    """Run two groups: one takes everything, one only paid orders. Fires when both have all that they should get."""
    from twisted.internet.defer import Deferred, gatherResults, maybeDeferred

    began = reactor.seconds()
    received: Counter[str] = Counter()
    complete: Deferred[None] = Deferred()

    def count(group: str, messages: list[MessageExt]) -> ConsumeStatus:
        from twisted_mq.client.consuming.consumer_options import ConsumeStatus

        received[group] += len(messages)
        if received >= wanted and not complete.called:
            complete.callback(None)
        return ConsumeStatus.CONSUME_SUCCESS

    consumers = [
        _consumer(reactor, name_server, "demo_audit", {ORDERS_TOPIC: "*", METRICS_TOPIC: "*"}, count),
        _consumer(reactor, name_server, "demo_paid", {ORDERS_TOPIC: "paid"}, count),
    ]
    await gatherResults([consumer.start() for consumer in consumers])
    try:
        await complete.addTimeout(LIMIT_SECONDS, reactor, onTimeoutCancel=lambda result, seconds: None)
        return Counter(received), reactor.seconds() - began
    finally:
        await gatherResults([maybeDeferred(consumer.stop) for consumer in consumers])


def _consumer(
    reactor: IReactorTime,
    name_server: str,
    group: str,
    subscriptions: dict[str, str],
    count: Callable[[str, list[MessageExt]], ConsumeStatus],
) -> PushConsumer:
    from twisted_mq.client.consuming.consumer_options import ConsumeFromWhere, ConsumerOptions
    from twisted_mq.client.consuming.push_consumer import PushConsumer

    options = ConsumerOptions(
        consume_from_where=ConsumeFromWhere.FIRST_OFFSET, consume_message_batch_max_size=BATCH_MESSAGES
    )
    consumer = PushConsumer(
        reactor, group, name_server, listener=lambda messages, context: count(group, messages), options=options
    )
    for topic, expression in subscriptions.items():
        consumer.subscribe(topic, expression)
    return consumer


def print_figures(figures: Figures) -> None:
    """Print what was sent and received, and how fast."""
    rows: list[Row] = []
    for sends in figures.sends:
        for status, count in sorted(sends.statuses.items()):
            rows.append([sends.what, sends.topic, status, count, _rate(count, sends.seconds)])
    for group, count in sorted(figures.received.items()):
        rows.append(["consumed", f"group {group}", "", count, _rate(count, figures.consume_seconds)])
    print_table(["what", "where", "status", "messages", "messages/s"], rows)


def _rate(count: int, seconds: float) -> int:
    return round(count / max(seconds, 1e-6))


def check_figures(figures: Figures, messages: int) -> None:
    """Check the results. Raises CliError if a send failed, or a message was lost or came twice."""
    sent = [dict(sends.statuses) for sends in figures.sends]
    wanted_sent = [{"SEND_OK": messages}, {"SEND_OK": batches_for(messages) * BATCH_MESSAGES}]
    if sent != wanted_sent:
        raise CliError(f"sends ended with {sent} instead of {wanted_sent}", "see the log lines above")
    wanted = expected(messages)
    if figures.received != wanted:
        raise CliError(
            f"consumed {dict(figures.received)} instead of {dict(wanted)} within {LIMIT_SECONDS:.0f} s",
            "run `mq demo` again; if it fails again, report a bug",
        )
    click.echo("every message sent was consumed exactly once by each group that wanted it")


def run_report(store: str, out: str) -> None:
    """Run the Spark report on the store's files, in a process of its own. It prints the paths of report and picture."""
    click.echo("Spark reads the store's files ...")
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "-m", "twisted_mq.spark.report", store, "--out", out], check=False)
    if done.returncode != 0:
        raise CliError(f"the report ended with exit code {done.returncode}", "see its output above")
