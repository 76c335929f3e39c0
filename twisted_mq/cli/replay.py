"""Implements `mq replay`: sends messages of a topic, of a store at rest, of Kafka or of RabbitMQ to a topic."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.admin.anew import own_properties
from twisted_mq.cli.asking import BEGINNINGS, ask, begin_of, is_offset, time_ms_of
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.other_systems import Imported, ImportRun, ImportSource, kafka_source, rabbit_source
from twisted_mq.cli.outgoing_messages import read_properties
from twisted_mq.cli.output import json_line, print_table, progress
from twisted_mq.cli.server_options import reaches_servers
from twisted_mq.cli.store_options import require_numpy, time_text
from twisted_mq.protocol.text.json_value import Json

if TYPE_CHECKING:
    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.servers import Servers
    from twisted_mq.client import Message
    from twisted_mq.protocol.messages.message import Message as MessageToSend
    from twisted_mq.protocol.messages.message import MessageExt

GROUP = "mq_replay"
EVERYTHING = 1 << 62
UNIQUE_KEY = "UNIQ_KEY"


@attrs.frozen
class ReplayPlan:
    """The messages of a topic to send, and their target."""

    topic: str
    to: str
    beginning: str = "earliest"
    until: str | None = None
    tags: str = "*"
    key: str | None = None
    count: int = EVERYTHING
    keep_ids: bool = False

    def takes(self, message: MessageExt) -> bool:
        """Return True if tag and key match."""
        named = {tag.strip() for tag in self.tags.split("||")}
        return ("*" in named or message.tags in named) and (self.key is None or self.key in message.keys)

    def anew(self, message: MessageExt) -> Message:
        """Return the message as a new one."""
        from twisted_mq.client import Message

        kept = own_properties(message.properties)
        if self.keep_ids and message.unique_key:
            kept[UNIQUE_KEY] = message.unique_key
        return Message(self.to, message.body, flag=message.flag, properties=kept)


@attrs.define
class Tally:
    """The messages sent, or to send. Times are store times in ms, 0 without messages."""

    messages: int = 0
    body_bytes: int = 0
    oldest_ms: int = 0
    newest_ms: int = 0

    def add(self, message: MessageExt) -> None:
        self.messages += 1
        self.body_bytes += len(message.body)
        self.oldest_ms = min(self.oldest_ms or message.store_timestamp, message.store_timestamp)
        self.newest_ms = max(self.newest_ms, message.store_timestamp)


@click.command(short_help="Send messages of a topic or a store to a topic again.")
@click.argument("topic")
@click.option("--to", required=True, help="Topic to send to.")
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False),
    help="Read the messages from the files of a store instead of a broker.",
)
@click.option("--kafka", metavar="SERVERS", help="Take the messages of Kafka's topic TOPIC, from HOST:PORT[,..].")
@click.option(
    "--kafka-group", default=GROUP, show_default=True, help="Consumer group at Kafka, which remembers how far it is."
)
@click.option(
    "--kafka-option",
    "kafka_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Further setting of kafka.KafkaConsumer, such as security_protocol=SSL; may be repeated.",
)
@click.option(
    "--rabbitmq",
    metavar="URL",
    envvar="MQ_RABBITMQ",
    help="Take the messages of RabbitMQ's queue TOPIC, from amqp://USER:PASSWORD@HOST:5672/VHOST; "
    "the variable MQ_RABBITMQ is safer.",
)
@click.option(
    "--idle",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0),
    help="With --kafka and --rabbitmq: end when no message arrived for this many seconds.",
)
@click.option(
    "--skip-empty", is_flag=True, help="With --kafka and --rabbitmq: leave out messages without a body, and count them."
)
@click.option("--from", "beginning", default="earliest", show_default=True, help=f"{BEGINNINGS}.")
@click.option("--until", help="Stop before this queue offset or time.  [default: the present end of each queue]")
@click.option("--tags", default="*", show_default=True, help='Select only messages with these tags, such as "A || B".')
@click.option("--key", help="Select only messages with this key.")
@click.option("--count", type=click.IntRange(1), default=None, help="Maximum number of messages.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Maximum number of messages per second.")
@click.option("--keep-ids", is_flag=True, help="Keep the message ids.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, without sending it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reaches_servers
def replay(
    topic: str,
    to: str,
    store: str | None,
    kafka: str | None,
    kafka_group: str,
    kafka_options: tuple[str, ...],
    rabbitmq: str | None,
    idle: float,
    skip_empty: bool,
    beginning: str,
    until: str | None,
    tags: str,
    key: str | None,
    count: int | None,
    rate: float | None,
    keep_ids: bool,
    dry_run: bool,
    as_json: bool,
    servers: Servers,
) -> None:
    """Send messages of TOPIC to another topic, with their tags, keys and properties, each queue in its order.

    \b
    Examples:
      mq replay Orders --to OrdersAgain --from 2026-11-22T08:00 --rate 100
      mq replay Orders --store ~/store --to OrdersAgain --dry-run
      mq replay orders --kafka kafka:9092 --to Orders --rate 500
    """
    if kafka is not None or rabbitmq is not None:
        chosen = (store, until, key, kafka and rabbitmq, tags != "*", beginning != "earliest", keep_ids, dry_run)
        if any(chosen):
            raise click.UsageError(
                "One of --kafka and --rabbitmq goes with --to, --idle, --rate, --count and --skip-empty alone."
            )
        options = read_properties(kafka_options)
        make = (
            (lambda: kafka_source(kafka, topic, kafka_group, options))
            if kafka
            else (lambda: rabbit_source(str(rabbitmq), topic))
        )
        moved = ask(servers, lambda admin: _moved(admin, make, to, idle, rate, count, skip_empty))
        _print_moved(moved, topic, to, as_json)
        return
    wanted = ReplayPlan(topic, to, beginning, until, tags, key, count or EVERYTHING, keep_ids)
    stored = None if store is None else messages_of_store(store, wanted)

    async def main(admin: AdminContext) -> Tally:
        source = of_topic(admin, wanted) if stored is None else _in_thread(admin, stored)
        return await count_all(source, wanted) if dry_run else await send_all(admin, source, wanted, rate)

    _print(ask(servers, main), wanted, "would be sent" if dry_run else "sent", as_json)


async def _moved(
    admin: AdminContext,
    make: Callable[[], ImportSource],
    to: str,
    idle: float,
    rate: float | None,
    count: int | None,
    skip_empty: bool,
) -> Imported:
    """Move the messages of another system; its connection is closed at the end."""
    from twisted_mq.admin.sending import started_producer
    from twisted_mq.reactor_threads import threads_of

    reactor = admin.reactor
    assert reactor is not None
    in_thread = threads_of(reactor)
    source = await in_thread(make)
    try:
        async with started_producer(admin, GROUP) as producer:
            queues = await producer.publish_queues(to)

            async def send(message: MessageToSend, shard: int) -> None:
                await producer.send(message, queues[shard % len(queues)])

            run = ImportRun(
                source,
                to,
                send,
                in_thread,
                reactor.seconds,
                admin.sleep,
                idle,
                rate=rate,
                count=count,
                skip_empty=skip_empty,
            )
            with progress("sending", None) as advance:
                return await run.run(advance)
    finally:
        await in_thread(source.close)


def _print_moved(moved: Imported, topic: str, to: str, as_json: bool) -> None:
    row: dict[str, Json] = {
        "from": topic,
        "to": to,
        "what": "sent",
        "messages": moved.messages,
        "bodyBytes": moved.body_bytes,
        "skipped": moved.skipped,
    }
    _print_row(row, as_json)


def messages_of_store(store: str, wanted: ReplayPlan) -> Iterator[MessageExt]:
    """Yield messages in the order of the log. Raises CliError for a malformed place, NoStore."""
    require_numpy()
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.filters import RecordFilter, SelectedMessages

    since, first = _place(wanted.beginning, 0, 0)
    until, last = _place(wanted.until, EVERYTHING, EVERYTHING)
    chosen = RecordFilter((wanted.topic,), (), (), since, until, 0, EVERYTHING, first, last)
    return iter(SelectedMessages(LogFiles(store), chosen, lambda amount: None))


def _place(text: str | None, time_ms: int, offset: int) -> tuple[int, int]:
    """Return a store time and a queue offset, one of which the text sets."""
    if text in (None, "earliest"):
        return time_ms, offset
    if text == "latest":
        raise CliError("a store has no position 'latest' to start from; use another --from", f"give {BEGINNINGS}")
    if is_offset(text):
        return time_ms, int(text)
    return time_ms_of(text, "--from"), offset


async def of_topic(admin: AdminContext, wanted: ReplayPlan) -> AsyncIterator[MessageExt]:
    """Yield one queue after the other, each up to its present end."""
    from twisted_mq.admin.queues import TopicReader

    reader = await TopicReader.of(admin, wanted.topic)
    ends = {queue: await reader.max_offset(queue) for queue in reader.queues(wanted.topic)}
    for queue, end in ends.items():
        first = await begin_of(reader, queue, wanted.beginning)
        last = end if wanted.until is None else min(end, await begin_of(reader, queue, wanted.until))
        async for result in reader.pulls(queue, first, last):
            for message in result.messages:
                if message.queue_offset < last:
                    yield message


async def _in_thread(admin: AdminContext, stored: Iterator[MessageExt]) -> AsyncIterator[MessageExt]:
    from twisted_mq.reactor_threads import threads_of

    assert admin.reactor is not None
    in_thread = threads_of(admin.reactor)
    while (message := await in_thread(next, stored, None)) is not None:
        yield message


async def _chosen(source: AsyncIterator[MessageExt], wanted: ReplayPlan) -> AsyncIterator[MessageExt]:
    left = wanted.count
    async for message in source:
        if wanted.takes(message):
            yield message
            left -= 1
            if not left:
                return


async def count_all(source: AsyncIterator[MessageExt], wanted: ReplayPlan) -> Tally:
    """Return what would be sent."""
    tally = Tally()
    async for message in _chosen(source, wanted):
        tally.add(message)
    return tally


async def send_all(
    admin: AdminContext, source: AsyncIterator[MessageExt], wanted: ReplayPlan, rate: float | None
) -> Tally:
    """Send them, several in flight; raise the first failure after the earlier ones are sent."""
    from twisted_mq.admin.sending import started_producer
    from twisted_mq.cli.send import send_in_order

    tally, chosen, began_ms = Tally(), _chosen(source, wanted), admin.now_ms()

    async def next_message() -> Message | None:
        message = await anext(chosen, None)
        if message is None:
            return None
        due_ms = began_ms + tally.messages * 1000 / rate if rate else 0.0
        if due_ms > admin.now_ms():
            await admin.sleep((due_ms - admin.now_ms()) / 1000)
        tally.add(message)
        return wanted.anew(message)

    async with started_producer(admin, GROUP) as producer:
        with progress("sending", None) as advance:
            async for _ in send_in_order(producer.send, next_message):
                advance(1)
    return tally


def _print(tally: Tally, wanted: ReplayPlan, what: str, as_json: bool) -> None:
    row: dict[str, Json] = {
        "from": wanted.topic,
        "to": wanted.to,
        "what": what,
        "messages": tally.messages,
        "bodyBytes": tally.body_bytes,
        "oldest": time_text(tally.oldest_ms),
        "newest": time_text(tally.newest_ms),
    }
    _print_row(row, as_json)


def _print_row(row: dict[str, Json], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_line(row))
    else:
        print_table(tuple(row), [tuple(row.values())])
