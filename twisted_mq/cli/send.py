"""`mq send TOPIC [BODY]`: messages from the command line, a file, or the lines of standard input."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO

import attrs
import click

from twisted_mq.cli.output import Advance, Row, plain_row, print_table, progress

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.client import Message, Producer, SendResult

COLUMNS = ("status", "msgId", "broker", "queueId", "queueOffset")

IN_FLIGHT = 32
"""Sends that wait for their answers at once."""

LONGEST_TABLE = 20
"""More results than this are summed up on a terminal."""


@attrs.frozen
class SendOptions:
    """What every message of a run has in common."""

    topic: str
    tags: str | None
    keys: str | None
    properties: Mapping[str, str]
    count: int
    group: str
    namesrv: str


@click.command(short_help="Send messages.")
@click.argument("topic")
@click.argument("body", required=False)
@click.option("--file", "file", type=click.File("rb"), help='Take the body from a file ("-": standard input).')
@click.option("--lines", is_flag=True, help="With --file: each line is a message, empty ones are passed over.")
@click.option("--tags", help="Tag of the messages, which consumers select by.")
@click.option("--keys", help="Keys of the messages, parted by blanks.")
@click.option("--property", "properties", multiple=True, metavar="NAME=VALUE", help="A property; may be repeated.")
@click.option("--count", default=1, show_default=True, type=click.IntRange(1), help="Send each message so often.")
@click.option("--group", default="mq_send", show_default=True, help="Producer group.")
@click.option("--namesrv", envvar="NAMESRV_ADDR", default="127.0.0.1:9876", show_default=True, help="Name servers.")
def send(
    topic: str,
    body: str | None,
    file: BinaryIO | None,
    lines: bool,
    tags: str | None,
    keys: str | None,
    properties: tuple[str, ...],
    count: int,
    group: str,
    namesrv: str,
) -> None:
    """Send BODY to TOPIC; without BODY and --file, each line of standard input is a message.

    Prints what became of each message. Stops at the first that fails, with exit code 1.

    \b
    Examples:
      mq send Orders "hello" --tags new --keys order-1
      cat orders.txt | mq send Orders
    """
    from twisted_mq.cli.run import run_under_reactor

    options = SendOptions(topic, tags, keys, read_properties(properties), count, group, namesrv)
    next_body = body_source(body, file, lines)
    run_under_reactor(lambda reactor: _send_all(reactor, options, next_body))


def read_properties(texts: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE texts as a mapping. Raises click.UsageError."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.UsageError(f"--property takes NAME=VALUE, got {name!r}.")
    return {name: value for name, _, value in pairs}


def body_source(body: str | None, file: BinaryIO | None, lines: bool) -> Iterator[bytes]:
    """The bodies to send, read when they are asked for. Raises click.UsageError where the options disagree."""
    if body is not None and file is not None:
        raise click.UsageError("BODY and --file exclude each other.")
    if body is not None:
        return iter([os.fsencode(body)])
    if file is not None:
        return lines_of(file) if lines else iter([file.read()])
    if sys.stdin.isatty():
        raise click.UsageError("Nothing to send: give BODY or --file, or pipe lines in.")
    return lines_of(sys.stdin.buffer)


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """Lines without their ends; empty ones are left out."""
    for line in stream:
        stripped = line.rstrip(b"\r\n")
        if stripped:
            yield stripped


async def _send_all(reactor: IReactorTime, options: SendOptions, bodies: Iterator[bytes]) -> None:
    from twisted_mq.client.producing.producer import Producer
    from twisted_mq.reactor_threads import threads_of

    in_thread = threads_of(reactor)

    async def next_body() -> bytes | None:
        """Reading may block: it happens in a thread."""
        return await in_thread(next, bodies, None)

    producer = Producer(reactor, options.group, options.namesrv)
    await producer.start()
    try:
        with progress("sending", None) as advance:
            await _print_results(send_in_order(producer, options, next_body), advance)
    finally:
        await producer.stop()


async def send_in_order(
    producer: Producer,
    options: SendOptions,
    next_body: Callable[[], Awaitable[bytes | None]],
    in_flight: int = IN_FLIGHT,
) -> AsyncIterator[SendResult]:
    """Results in the order of the messages, with several sends under way. The first failure is raised."""
    pending: deque[Deferred[SendResult]] = deque()
    try:
        while (body := await next_body()) is not None:
            for _ in range(options.count):
                pending.append(producer.send(make_message(options, body)))
                if len(pending) >= in_flight:
                    yield await pending.popleft()
        while pending:
            yield await pending.popleft()
    finally:
        for unread in pending:
            unread.addErrback(lambda reason: None)  # the first failure is the one to report


def make_message(options: SendOptions, body: bytes) -> Message:
    from twisted_mq.client.core.message import Message

    return Message(
        options.topic, body, options.tags, (options.keys or "").split() or None, properties=options.properties
    )


def result_row(result: SendResult) -> Row:
    """A SendResult under COLUMNS."""
    queue = result.queue
    return result.status.name, result.msg_id, queue.broker_name, queue.queue_id, result.queue_offset


async def _print_results(results: AsyncIterator[SendResult], advance: Advance) -> None:
    """Rows at once where output is piped; a table or a sum at the end on a terminal."""
    terminal = sys.stdout.isatty()
    rows: list[Row] = []
    total = 0
    try:
        async for result in results:
            total += 1
            advance(1)
            if not terminal and total == 1:
                print("\t".join(COLUMNS))
            if not terminal:
                print(plain_row(result_row(result)), flush=True)
            elif total <= LONGEST_TABLE:
                rows.append(result_row(result))
    finally:
        if terminal and 0 < total <= LONGEST_TABLE:
            print_table(COLUMNS, rows)
        elif terminal and total:
            print(f"{total} messages sent")
