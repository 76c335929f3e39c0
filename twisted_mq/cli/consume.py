"""Implements `mq consume TOPIC --group GROUP`: messages as lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

import click

from twisted_mq.cli.asking import BEGINNINGS
from twisted_mq.cli.errors import report
from twisted_mq.cli.output import Row, plain_row
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IDelayedCall, IReactorTime

    from twisted_mq.cli.servers import Servers
    from twisted_mq.client import ConsumeContext, ConsumeStatus, PushConsumer
    from twisted_mq.protocol.messages.message import MessageExt

COLUMNS = ("topic", "queueId", "queueOffset", "msgId", "tags", "keys", "body")

Write = Callable[["MessageExt"], None]


@click.command(short_help="Consume messages and print them.")
@click.argument("topic")
@click.option("--group", required=True, help="Consumer group; the broker stores its offsets.")
@click.option("--tags", default="*", show_default=True, help='Consume only messages with these tags, such as "A || B".')
@click.option("--count", type=click.IntRange(1), help="Stop after this many messages.")
@click.option("--follow", is_flag=True, help="Continue until Ctrl-C.")
@click.option(
    "--idle", default=5.0, show_default=True, help="Without --follow: stop after this many seconds without a message."
)
@click.option("--from-end", is_flag=True, help="Start a new group at the end of the topic, not at its beginning.")
@click.option("--from", "beginning", help=f"Reset the offsets of GROUP first (it must have no members): {BEGINNINGS}.")
@click.option(
    "--json", "form", flag_value="json", help="Print one JSON object per message, like `mq store dump --json`."
)
@click.option("--raw", "form", flag_value="raw", help="Print only the bodies, one per line.")
@reaches_servers
def consume(
    topic: str,
    group: str,
    tags: str,
    count: int | None,
    follow: bool,
    idle: float,
    from_end: bool,
    beginning: str | None,
    form: str | None,
    servers: Servers,
) -> None:
    """Consume TOPIC as a member of GROUP and print one line per message, with columns separated by tabs.

    A message is consumed when it is printed. A new group starts at the beginning of the topic.

    \b
    Examples:
      mq consume Orders --group audit --tags "new || paid" --count 10
      mq consume Orders --group audit --from 2026-11-22T08:00
    """
    from twisted_mq.cli.run import Interrupted, run_under_reactor

    async def main(reactor: IReactorTime) -> None:
        consumer = make_consumer(reactor, group, servers, from_end)
        consumer.subscribe(topic, tags)
        try:
            await check_topic_exists(consumer, topic, wait=follow)
            if beginning is not None:
                await begin_at(reactor, servers, group, topic, beginning)
            printer = Printer(reactor, writer(form, sys.stdout), count, None if follow else idle)
            consumer.listen(printer)
            await consumer.start()
            printer.begin()
            await printer.finished
        finally:
            await consumer.stop(finish_seconds=0)
            consumer.client.remoting.close()

    try:
        run_under_reactor(main)
    except Interrupted:
        sys.stdout.flush()


async def begin_at(reactor: IReactorTime, servers: Servers, group: str, topic: str, beginning: str) -> None:
    """Move the group to a place in the topic. Raises CliError if it has members."""
    from twisted_mq.cli.admin.connected import connected
    from twisted_mq.cli.group_positions import put_group

    with connected(reactor, servers, click.echo, lambda text: report("mq consume", text)) as admin:
        await put_group(admin, group, topic, beginning)


def make_consumer(reactor: IReactorTime, group: str, servers: Servers, from_end: bool) -> PushConsumer:
    """Return a push consumer that delivers its messages one after another; it has no listener yet."""
    from twisted_mq.client.consuming.consumer_options import ConsumeFromWhere, ConsumerOptions
    from twisted_mq.client.consuming.push_consumer import PushConsumer

    where = ConsumeFromWhere.LAST_OFFSET if from_end else ConsumeFromWhere.FIRST_OFFSET
    options = ConsumerOptions(consume_from_where=where, concurrency=1)
    client_options = servers.client_options()
    return PushConsumer(reactor, group, servers.namesrv, options=options, client_options=client_options)


async def check_topic_exists(consumer: PushConsumer, topic: str, *, wait: bool) -> None:
    """Check that the topic exists. Raises NoRoute if no name server answers or, unless `wait`, if none knows the topic."""
    from twisted_mq.client.core.errors import TopicNotFound

    try:
        await consumer.client.routes.find(topic)
    except TopicNotFound as missing:
        if not wait:
            raise
        report("mq consume", f"waiting for topic {topic}: {missing}")


class Printer:
    """A listener that writes messages until `count` is reached, or until nothing came for `idle_seconds`.

    `finished` fires then. Messages past the count are left open, so that they stay unconsumed.
    """

    def __init__(self, clock: IReactorTime, write: Write, count: int | None, idle_seconds: float | None) -> None:
        from twisted.internet.defer import Deferred

        self.finished: Deferred[None] = Deferred()
        self._clock = clock
        self._write = write
        self._left = count
        self._idle_seconds = idle_seconds
        self._timer: IDelayedCall | None = None

    def begin(self) -> None:
        """Start to measure silence."""
        if self._idle_seconds is not None and not self.finished.called:
            self._timer = self._clock.callLater(self._idle_seconds, self._finish)

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus | Deferred[ConsumeStatus]:
        from twisted.internet.defer import Deferred

        from twisted_mq.client.consuming.consumer_options import ConsumeStatus

        if self._left == 0:
            return Deferred()
        for message in messages:
            self._write(message)
        if self._timer is not None and self._idle_seconds is not None and self._timer.active():
            self._timer.reset(self._idle_seconds)
        if self._left is not None:
            self._left = max(0, self._left - len(messages))
            if self._left == 0:  # the listener's answer is settled first
                self._clock.callLater(0, self._finish)
        return ConsumeStatus.CONSUME_SUCCESS

    def _finish(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        if not self.finished.called:
            self.finished.callback(None)


def writer(form: str | None, out: TextIO) -> Write:
    """Return the function that prints one message; plain rows begin with a line that names the columns."""
    if form == "json":
        from twisted_mq.admin.message_value import message_line

        return lambda message: _write_line(out, message_line(message))
    if form == "raw":
        return lambda message: _write_raw(out, message.body)
    _write_line(out, "\t".join(COLUMNS) + "\n")
    return lambda message: _write_line(out, plain_row(message_row(message)) + "\n")


def _write_line(out: TextIO, line: str) -> None:
    out.write(line)
    out.flush()


def _write_raw(out: TextIO, body: bytes) -> None:
    out.buffer.write(body + b"\n")
    out.buffer.flush()


def message_row(message: MessageExt) -> Row:
    """Return a message under COLUMNS; bytes of the body that are not UTF-8 are written as \\xNN."""
    return (
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.unique_key or message.msg_id,
        message.tags,
        " ".join(message.keys),
        message.body.decode("utf-8", "backslashreplace"),
    )
