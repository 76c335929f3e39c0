"""`mq dlq`: what consumer groups gave up on; list it, look at it, save it, send it again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.asking import BEGINNINGS, NAMESRV, ask
from twisted_mq.cli.consume import message_row, writer
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import Row, json_line, print_table
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.admin.queues import QueueReader
    from twisted_mq.protocol.bodies import MessageQueue
    from twisted_mq.protocol.messages.message import Message, MessageExt

COLUMNS = ("group", "messages", "notResent")
RESENT = "status", "topic", "msgId", "tags", "keys", "body"
EVERYTHING = 1 << 31
WOULD = "would be sent"


@click.group()
def dlq() -> None:
    """List, show, export and send again what consumer groups gave up on (dead letters).

    \b
    Example:
      mq dlq list
      mq dlq show audit
    """


@dlq.command("list", short_help="Groups with dead letters.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row.")
@NAMESRV
def list_groups(as_json: bool, namesrv: str) -> None:
    """A row for each group that gave up on messages: how many, and how many `mq dlq resend` has not sent yet."""
    rows = ask(namesrv, groups)
    if not as_json:
        print_table(COLUMNS, rows)
        return
    for row in rows:
        sys.stdout.write(json_line(dict(zip(COLUMNS, row, strict=True))))  # type: ignore[arg-type]


@dlq.command(short_help="Print a group's dead letters.")
@click.argument("group")
@click.option("--from", "beginning", default="earliest", show_default=True, help=f"{BEGINNINGS}.")
@click.option("--count", default=10, show_default=True, type=click.IntRange(1), help="So many at most.")
@click.option("--json", "form", flag_value="json", help="One JSON object a message, as `mq consume --json`.")
@NAMESRV
def show(group: str, beginning: str, count: int, form: str | None, namesrv: str) -> None:
    """Print dead letters of GROUP; the property RETRY_TOPIC (in --json) has the topic where each came from."""
    _print(group, beginning, count, form, namesrv)


@dlq.command(short_help="All dead letters of a group as JSON lines.")
@click.argument("group")
@click.option("--from", "beginning", default="earliest", show_default=True, help=f"{BEGINNINGS}.")
@NAMESRV
def export(group: str, beginning: str, namesrv: str) -> None:
    """Print all dead letters of GROUP, one JSON object a line.

    \b
    Example:
      mq dlq export audit > dead-letters.jsonl
    """
    _print(group, beginning, EVERYTHING, "json", namesrv)


def _print(group: str, beginning: str, count: int, form: str | None, namesrv: str) -> None:
    from twisted_mq.cli.peek import first_messages

    async def main(admin: AdminContext) -> None:
        await _check(admin, group)
        write = writer(form, sys.stdout)
        async for message in first_messages(admin, DLQ_PREFIX + group, beginning, count):
            write(message)

    ask(namesrv, main)


@dlq.command(short_help="Send dead letters to their topics again.")
@click.argument("group")
@click.option("--key", help="Only messages with this key.")
@click.option("--id", "message_id", help="Only the message of this id.")
@click.option("--again", is_flag=True, help="Also what was sent again before.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@NAMESRV
def resend(group: str, key: str | None, message_id: str | None, again: bool, dry_run: bool, namesrv: str) -> None:
    """Send dead letters of GROUP to the topics where they came from, each once: how far that went is kept at the broker as
    the position of the group GROUP-resent. With --key or --id that position stays as it is.

    \b
    Examples:
      mq dlq resend audit --dry-run
      mq dlq resend audit --key order-17
    """
    from twisted_mq.cli.admin.offsets import commit_offset
    from twisted_mq.cli.admin.queues import QueueReader
    from twisted_mq.cli.admin.sending import started_producer

    selects = key is not None or message_id is not None

    async def main(admin: AdminContext) -> list[Row]:
        await _check(admin, group)
        reader = await QueueReader.of(admin, DLQ_PREFIX + group)
        async with started_producer(admin, "mq_dlq") as producer:
            rows: list[Row] = []
            async for queue, message in _dead_letters(admin, reader, group, begin_anew=again or selects):
                if _wanted(message, key, message_id):
                    anew = fresh(message)
                    result = WOULD if dry_run else (await producer.send(anew)).status.name
                    rows.append((result, anew.topic, *message_row(message)[3:]))
                if not (selects or dry_run):
                    await commit_offset(
                        admin, reader.address(queue), resent_group(group), queue, message.queue_offset + 1
                    )
            return rows

    print_table(RESENT, ask(namesrv, main))


OWN = {
    "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME", "MAX_RECONSUME_TIMES", "DELAY",
    "UNIQ_KEY", "WAIT", "MIN_OFFSET", "MAX_OFFSET", "CLUSTER", "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID", "PGROUP",
    "TRAN_MSG", "CONSUME_START_TIME", "MSG_REGION", "TRACE_ON",
}  # fmt: skip
"""Properties of the way that a message took; it begins anew."""


def fresh(message: MessageExt) -> Message:
    """A dead letter as a new message for the topic where it came from. Raises CliError where it does not say which."""
    from twisted_mq.protocol.messages.message import Message

    topic = message.properties.get("DLQ_ORIGIN_TOPIC") or message.properties.get("RETRY_TOPIC")
    if not topic:
        raise CliError(
            f"message {message.unique_key or message.msg_id} does not say from which topic it came",
            "export it, and send it by `mq send`",
        )
    kept = {name: value for name, value in message.properties.items() if name not in OWN}
    return Message(topic, message.body, flag=message.flag, properties={**kept, "DLQ_ORIGIN_MESSAGE_ID": message.msg_id})


def _wanted(message: MessageExt, key: str | None, message_id: str | None) -> bool:
    ids = message.unique_key, message.msg_id, message.properties.get("DLQ_ORIGIN_MESSAGE_ID")
    return (key is None or key in message.keys) and (message_id is None or message_id in ids)


async def groups(admin: AdminContext) -> list[Row]:
    """Each group with its dead letters, and those that were not sent again."""
    from twisted_mq.cli.admin.queues import QueueReader

    rows: list[Row] = []
    for topic in sorted(topic for topic in await admin.topic_list() if topic.startswith(DLQ_PREFIX)):
        group, count, left = topic.removeprefix(DLQ_PREFIX), 0, 0
        reader = await QueueReader.of(admin, topic)
        for queue in reader.queues(topic):
            first, end = await reader.min_offset(queue), await reader.max_offset(queue)
            count += end - first
            left += end - max(first, await _resent(admin, reader, group, queue))
        rows.append((group, count, left))
    return rows


async def _check(admin: AdminContext, group: str) -> None:
    topics = await admin.topic_list()
    if DLQ_PREFIX + group not in topics:
        known = ", ".join(sorted(one.removeprefix(DLQ_PREFIX) for one in topics if one.startswith(DLQ_PREFIX)))
        raise CliError(f"group {group} has no dead letters", f"groups that have: {known or 'none'}")


async def _dead_letters(
    admin: AdminContext, reader: QueueReader, group: str, *, begin_anew: bool
) -> AsyncIterator[tuple[MessageQueue, MessageExt]]:
    for queue in reader.queues(DLQ_PREFIX + group):
        first, end = await reader.min_offset(queue), await reader.max_offset(queue)
        if not begin_anew:
            first = max(first, await _resent(admin, reader, group, queue))
        async for result in reader.pulls(queue, first, end):
            for message in result.messages:
                yield queue, message


def resent_group(group: str) -> str:
    """The group whose position says what was sent again."""
    return f"{group}-resent"


async def _resent(admin: AdminContext, reader: QueueReader, group: str, queue: MessageQueue) -> int:
    """Up to where a queue of dead letters was sent again; 0 where nothing was."""
    from twisted_mq.protocol.codes import RequestCode, ResponseCode
    from twisted_mq.protocol.errors import BrokerError
    from twisted_mq.protocol.headers import QueryConsumerOffsetRequestHeader, QueryConsumerOffsetResponseHeader
    from twisted_mq.protocol.wire.header_codec import decode_header

    header = QueryConsumerOffsetRequestHeader(
        consumer_group=resent_group(group), topic=queue.topic, queue_id=queue.queue_id, set_zero_if_not_found=False
    )
    try:
        answer = await admin.invoke(reader.address(queue), RequestCode.QUERY_CONSUMER_OFFSET, header)
    except BrokerError as error:
        if error.response_code == ResponseCode.QUERY_NOT_FOUND:
            return 0
        raise
    return decode_header(QueryConsumerOffsetResponseHeader, answer).offset
