"""Implements `mqadmin printMsg`, `printMsgByQueue`, `consumeMessage` and `dumpCompactionLog`: messages of queues or of a
compaction log's file, without moving any group's offsets.
"""

from __future__ import annotations

from collections import Counter

import attrs

from twisted_mq.admin.queues import TOOLS_GROUP, TopicReader
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.files import read_bytes
from twisted_mq.cli.admin.java_text import message_text, queue_text
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import progress
from twisted_mq.client.core.pull_result import PullResult, PullStatus
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record import read_mark
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt

RULE = "-" * 56
NO_BODY = "NOT PRINT BODY"
DEFAULT_COUNT = 128


@attrs.frozen
class Printing:
    """The parts of messages to print. `charset` is None if bodies are not printed."""

    charset: str | None
    messages: bool = True

    def show(self, admin: AdminContext, queue: MessageQueue, messages: tuple[MessageExt, ...]) -> None:
        """Print messages of a queue."""
        for message in messages if self.messages else ():
            body = None if self.charset is None else message.body.decode(self.charset, "replace")
            message_id = message.unique_key or message.msg_id
            admin.say(
                f"MSGID: {message_id} {message_text(message, queue.broker_name)} BODY: "
                f"{NO_BODY if body is None else body}",
                msgId=message_id,
                offsetMsgId=message.msg_id,
                topic=message.topic,
                broker=queue.broker_name,
                queueId=message.queue_id,
                queueOffset=message.queue_offset,
                storeTimestamp=message.store_timestamp,
                properties=message.properties,
                body=body,
            )


def _span(line: CommandLine, admin: AdminContext, begin: str) -> tuple[int | None, int | None]:
    """Return the times that bound the search, in ms; None without a bound."""
    times = [line.time(key, admin.now_ms()) if key in line else None for key in (begin, "e")]
    return times[0], times[1]


def _ended_text(queue: MessageQueue, result: PullResult) -> str | None:
    """Return the text for a pull without messages."""
    words = "no matched msg." if result.status is PullStatus.NO_MATCHED_MSG else "print msg finished."
    if result.status is PullStatus.FOUND:
        return None
    return f"{queue_text(queue)} {words} status={result.status.name}, offset={result.next_begin_offset}"


async def print_msg(admin: AdminContext, line: CommandLine) -> None:
    topic, span = line.value("t"), _span(line, admin, "b")
    printing = Printing(line.charset("c") if line.is_true("d", True) else None)
    reader = await TopicReader.of(admin, line.value("l") or topic)
    for queue in reader.queues(topic):
        first, last = await reader.span(queue, *span)
        admin.say(f"minOffset={first}, maxOffset={last}, {queue_text(queue)}")
        async for result in reader.pulls(queue, first, last, line.value("s") or "*"):
            printing.show(admin, queue, result.messages)
            admin.say(_ended_text(queue, result))
        admin.say(RULE)


async def print_msg_by_queue(admin: AdminContext, line: CommandLine) -> None:
    queue = MessageQueue(line.value("t"), line.value("a"), line.number("i", 0))
    printing = Printing(line.charset("c") if line.is_true("d") else None, line.is_true("p"))
    reader = await TopicReader.of(admin, queue.topic)
    first, last = await reader.span(queue, *_span(line, admin, "b"))
    tags: Counter[str] = Counter()
    with progress("messages", last - first, hidden=printing.messages) as advance:
        async for result in reader.pulls(queue, first, last, line.value("s") or "*"):
            if result.status is not PullStatus.FOUND:
                break
            printing.show(admin, queue, result.messages)
            tags.update(message.tags for message in result.messages if message.tags)
            advance(len(result.messages))
    for tag, count in tags.most_common() if line.is_true("f") else ():
        admin.say(f"Tag: {tag:<30} Count: {count}", tag=tag, count=count)


async def consume_message(admin: AdminContext, line: CommandLine) -> None:
    reader = await TopicReader.of(admin, line.value("t"), line.value("g") or TOOLS_GROUP)
    count, span = _count(line), _past_span(line, admin)
    if "i" in line:
        queue = MessageQueue(line.value("t"), line.value("b"), line.number("i", 0))
        await _consume_queue(admin, reader, queue, line.number("o", 0), count, span)
        return
    for queue in reader.queues(line.value("t")):
        if count <= 0:
            return
        count = await _consume_some(admin, reader, queue, count, span)


def _count(line: CommandLine) -> int:
    """Return how many messages are wanted. Raises UsageError if the options disagree."""
    count = line.number("c", DEFAULT_COUNT)
    if count <= 0:
        raise UsageError("Please input a positive messageNumber!")
    if "i" in line and "b" not in line:
        raise UsageError("Please set the brokerName before queueId!")
    if "o" in line and "i" not in line:
        raise UsageError("Please set queueId before offset!")
    return count


def _past_span(line: CommandLine, admin: AdminContext) -> tuple[int | None, int | None]:
    """Return the times that bound the search. Raises UsageError if they are in the future or in the wrong order."""
    begin_ms, end_ms = _span(line, admin, "s")
    for name, time_ms in (("beginTimestamp", begin_ms), ("endTimestamp", end_ms)):
        if time_ms is not None and time_ms > admin.now_ms():
            raise UsageError(f"Please set the {name} before now!")
    if begin_ms is not None and end_ms is not None and begin_ms > end_ms:
        raise UsageError("Please make sure that the beginTimestamp is less than or equal to the endTimestamp")
    return begin_ms, end_ms


async def _consume_queue(
    admin: AdminContext,
    reader: TopicReader,
    queue: MessageQueue,
    offset: int,
    count: int,
    span: tuple[int | None, int | None],
) -> None:
    """Print messages of one queue from an offset on."""
    first, last = await reader.span(queue, *span)
    if offset > last:
        admin.say(f"{queue_text(queue)} no matched msg, offset={offset}")
        return
    first = max(first, offset)
    if last - first > count:
        admin.say(f"The oldler {count} message will be provided")
        last = first + count - 1
    await _print_until(admin, reader, queue, first, last)


async def _consume_some(
    admin: AdminContext, reader: TopicReader, queue: MessageQueue, count: int, span: tuple[int | None, int | None]
) -> int:
    """Print at most `count` messages of one queue; return how many are still wanted."""
    first, last = await reader.span(queue, *span)
    left = count - (last - first) - 1
    if last - first > count:
        admin.say(f"The older {count} message of the {queue.queue_id} queue will be provided")
        last, left = first + count - 1, 0
    await _print_until(admin, reader, queue, first, last)
    return left


async def _print_until(admin: AdminContext, reader: TopicReader, queue: MessageQueue, first: int, last: int) -> None:
    """Print messages up to and including the offset `last`."""
    offset = first
    while offset <= last:
        result = await reader.pull(queue, offset, last - offset + 1)
        offset = max(result.next_begin_offset, offset + 1)
        if result.status is PullStatus.FOUND:
            admin.say("Consume ok")
            Printing("UTF-8").show(admin, queue, result.messages)
        admin.say(_ended_text(queue, result))
        if result.status in (PullStatus.NO_NEW_MSG, PullStatus.OFFSET_ILLEGAL):
            return


async def dump_compaction_log(admin: AdminContext, line: CommandLine) -> None:
    if "f" not in line:
        raise UsageError("miss dump log file name")
    _show_messages(admin, read_bytes(line.value("f")))


def _show_messages(admin: AdminContext, data: bytes) -> None:
    """Show messages up to the first place without one, because the rest of the file is empty. Raises CliError for damage."""
    offset = 0
    while offset + 8 <= len(data) and 0 < read_mark(data, offset)[0] <= len(data) - offset:
        try:
            message = decode_message(data, offset, check_crc=False)
        except RecordError as error:
            raise CliError(f"no message at {offset}: {error}") from error
        admin.say(
            message_text(message, None),
            offset=offset, topic=message.topic, queueId=message.queue_id, queueOffset=message.queue_offset,
            msgId=message.unique_key or message.msg_id, keys=message.keys,
        )  # fmt: skip
        offset += message.store_size
