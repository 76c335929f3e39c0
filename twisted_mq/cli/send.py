"""Implements `mq send TOPIC [BODY]`: messages from the command line, a file, or the lines of standard input."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from twisted_mq.cli.asking import time_ms_of
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.outgoing_messages import Duration, SendOptions, messages, read_properties
from twisted_mq.cli.output import Advance, Row, json_line, plain_row, print_table, progress
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.cli.servers import Servers
    from twisted_mq.client import Message, Producer, SendResult
    from twisted_mq.protocol.bodies import MessageQueue

COLUMNS = ("status", "msgId", "broker", "queueId", "queueOffset")

IN_FLIGHT = 32
"""Sends in flight at once."""

LONGEST_TABLE = 20
"""More results than this are summed up on a terminal."""

Send = Callable[["Message"], "Deferred[SendResult]"]


@click.command(short_help="Send messages.")
@click.argument("topic")
@click.argument("body", required=False)
@click.option("--file", "file", type=click.File("rb"), help='Read the body from a file ("-": standard input).')
@click.option(
    "--lines", "form", flag_value="lines", help="With --file: each line is a message; empty lines are skipped."
)
@click.option(
    "--json-lines", "form", flag_value="json", help="Each line is a message in the format of `mq consume --json`."
)
@click.option("--tags", help="Tag of the messages; consumers can select by it.")
@click.option("--keys", help="Keys of the messages, separated by spaces.")
@click.option(
    "--property", "properties", multiple=True, metavar="NAME=VALUE", help="Property of the messages; may be repeated."
)
@click.option("--delay", type=Duration(), help="Deliver after this delay: 30s, 5m, 2h, 1d.")
@click.option("--at", help="Deliver at this time, such as 2026-11-22T08:00.")
@click.option("--delay-level", type=click.IntRange(1), help="Deliver after the delay of this level of the broker.")
@click.option("--queue", type=click.IntRange(0), help="Send to the queue with this id.")
@click.option("--broker", help="With --queue: name of the broker of the queue.")
@click.option(
    "--count", default=1, show_default=True, type=click.IntRange(1), help="Send each message this many times."
)
@click.option("--group", default="mq_send", show_default=True, help="Producer group.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per message.")
@reaches_servers
def send(
    topic: str,
    body: str | None,
    file: BinaryIO | None,
    form: str | None,
    tags: str | None,
    keys: str | None,
    properties: tuple[str, ...],
    delay: int | None,
    at: str | None,
    delay_level: int | None,
    queue: int | None,
    broker: str | None,
    count: int,
    group: str,
    as_json: bool,
    servers: Servers,
) -> None:
    """Send BODY to TOPIC; without BODY and --file, each line of standard input is a message.

    Prints the result of each send. Stops at the first failure, with exit code 1.

    \b
    Examples:
      mq send Orders "hello" --tags new --keys order-1
      mq send Orders "remember" --delay 30m
      cat orders.txt | mq send Orders
    """
    from twisted_mq.cli.run import run_under_reactor

    if broker is not None and queue is None:
        raise click.UsageError("--broker requires --queue.")
    options = SendOptions(topic, tags, keys, read_properties(properties), count, later_of(delay, at, delay_level))
    found = messages(options, body, file, form)

    async def main(reactor: IReactorTime) -> None:
        from twisted_mq.client.producing.producer import Producer

        producer = Producer(reactor, group, servers.namesrv, client_options=servers.client_options())
        await producer.start()
        try:
            chosen = None if queue is None else await queue_of(producer, topic, queue, broker)
            results = send_in_order(lambda message: producer.send(message, chosen), read_in_thread(reactor, found))
            with progress("sending", None) as advance:
                await _print_results(results, advance, as_json)
        finally:
            await producer.stop()

    run_under_reactor(main)


def later_of(delay_ms: int | None, at: str | None, level: int | None) -> dict[str, Any]:
    """Return when messages are delivered, as arguments of a Message. Raises click.UsageError for two of them, CliError
    for a malformed time.
    """
    given = {
        "delay_time_seconds": None if delay_ms is None else delay_ms / 1000,
        "deliver_time": None if at is None else time_ms_of(at, "--at") / 1000,
        "delay_time_level": level,
    }
    later = {name: value for name, value in given.items() if value}
    if len(later) > 1:
        raise click.UsageError("Give one of --delay, --at and --delay-level.")
    return later


async def queue_of(producer: Producer, topic: str, queue_id: int, broker: str | None) -> MessageQueue:
    """Return a queue by its number, and its broker's name if several have it. Raises CliError, NoRoute."""
    queues = await producer.publish_queues(topic)
    found = [one for one in queues if one.queue_id == queue_id and broker in (None, one.broker_name)]
    if not found:
        there = ", ".join(f"{one.broker_name} {one.queue_id}" for one in queues)
        raise CliError(f"topic {topic} has no such writable queue", f"writable queues: {there}")
    return found[0]


def read_in_thread(reactor: IReactorTime, found: Iterator[Message]) -> Callable[[], Awaitable[Message | None]]:
    """Return a function for the next message, None at the end; it reads in a thread, because reading may block."""
    from twisted_mq.reactor_threads import threads_of

    in_thread = threads_of(reactor)

    async def next_message() -> Message | None:
        return await in_thread(next, found, None)

    return next_message


async def send_in_order(
    send_one: Send, next_message: Callable[[], Awaitable[Message | None]], in_flight: int = IN_FLIGHT
) -> AsyncIterator[SendResult]:
    """Yield results in the order of the messages, with several sends in flight. The first failure is raised."""
    pending: deque[Deferred[SendResult]] = deque()
    try:
        while (message := await next_message()) is not None:
            pending.append(send_one(message))
            if len(pending) >= in_flight:
                yield await pending.popleft()
        while pending:
            yield await pending.popleft()
    finally:
        for unread in pending:
            unread.addErrback(lambda reason: None)  # the first failure is the one to report


def result_row(result: SendResult) -> Row:
    """Return a SendResult under COLUMNS."""
    queue = result.queue
    return result.status.name, result.msg_id, queue.broker_name, queue.queue_id, result.queue_offset


def result_line(result: SendResult) -> str:
    """Return the same as JSON; a message that waits has a handle to recall it."""
    handle = {} if result.recall_handle is None else {"recallHandle": result.recall_handle}
    return json_line({**dict(zip(COLUMNS, result_row(result), strict=True)), **handle})  # type: ignore[arg-type]


async def _print_results(results: AsyncIterator[SendResult], advance: Advance, as_json: bool) -> None:
    """Print rows at once if output is piped; a table or a sum at the end on a terminal."""
    piped = as_json or not sys.stdout.isatty()
    rows: list[Row] = []
    total = 0
    try:
        async for result in results:
            total += 1
            advance(1)
            if piped and total == 1 and not as_json:
                print("\t".join(COLUMNS))
            if piped:
                print(result_line(result).rstrip("\n") if as_json else plain_row(result_row(result)), flush=True)
            elif total <= LONGEST_TABLE:
                rows.append(result_row(result))
    finally:
        if not piped and 0 < total <= LONGEST_TABLE:
            print_table(COLUMNS, rows)
        elif not piped and total:
            print(f"{total} messages sent")
