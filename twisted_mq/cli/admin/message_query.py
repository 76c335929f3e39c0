"""Implements `mqadmin queryMsgById`, `queryMsgByKey`, `queryMsgByUniqueKey`, `queryMsgByOffset`, `queryMsgTraceById`.

As in Apache's tool, bodies go to files, but in a new private folder instead of a shared one in /tmp.
"""

from __future__ import annotations

from twisted_mq.admin.found_messages import FOREVER_MS, MOST_OF_A_KEY, find_message, messages_of_key, traces_of
from twisted_mq.admin.groups import is_push_type, running_info
from twisted_mq.admin.message_tracks import MessageTrack, message_tracks
from twisted_mq.admin.queues import TopicReader
from twisted_mq.admin.sending import send_once
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.files import write_private_file
from twisted_mq.cli.admin.java_format import date_text, hash_order, map_text, text_or_null, time_text
from twisted_mq.cli.admin.java_text import direct_result_text
from twisted_mq.cli.admin.sending import send_result_text
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, MessageQueue
from twisted_mq.protocol.bodies.types import wire_name
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import ConsumeMessageDirectlyResultRequestHeader
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.messages.trace import TRACE_TOPIC, ConsumeEndTrace, PublishTrace
from twisted_mq.remoting.errors import RemotingError

KEYS = TextTable("{:<50} {:>4} {:>40}".format("#Message ID", "#QID", "#Offset"), "{:<50} {:>4} {:>40}",
             ("msgId", "queueId", "queueOffset"))  # fmt: skip

MOST_BY_KEY = 64
OFFSET_ID = "OffsetID"


async def query_msg_by_id(admin: AdminContext, line: CommandLine) -> None:
    topic, cluster = line.value("t"), line.value("c") or None
    for message_id in line.parts("i"):
        message = await find_message(admin, topic, message_id, cluster)
        if "g" in line and "d" in line:
            await _consume_directly(admin, line, message)
        elif "s" in line:
            if line.is_true("s"):
                await _send_again(admin, message_id, message)
        else:
            await show_message(admin, message, line.charset("f") if "f" in line else None, with_id=True)


async def query_msg_by_key(admin: AdminContext, line: CommandLine) -> None:
    found = await messages_of_key(
        admin,
        line.value("t"),
        line.value("k"),
        line.number("m", MOST_BY_KEY),
        line.number("b", 0),
        line.number("e", FOREVER_MS),
        line.value("c") or None,
    )
    admin.say(KEYS.head)
    for message in found:
        admin.row(KEYS, message.unique_key or message.msg_id, message.queue_id, message.queue_offset)


async def query_msg_by_unique_key(admin: AdminContext, line: CommandLine) -> None:
    found = await messages_of_key(
        admin, line.value("t"), line.value("i"), MOST_OF_A_KEY, 0, FOREVER_MS, line.value("c") or None, True
    )
    found.sort(key=lambda message: message.store_timestamp)
    if "g" in line and "d" in line:
        await _consume_directly(admin, line, found[0])
        return
    for message in found if "a" in line else found[:1]:
        await show_message(admin, message, None, with_id=False)


async def query_msg_by_offset(admin: AdminContext, line: CommandLine) -> None:
    queue = MessageQueue(line.value("t"), line.value("b"), line.number("i", 0))
    result = await (await TopicReader.of(admin, queue.topic)).pull(queue, line.number("o", 0), 1)
    for message in result.messages[:1]:
        await show_message(admin, message, line.charset("f") if "f" in line else None, with_id=True)


async def show_message(admin: AdminContext, message: MessageExt, charset: str | None, *, with_id: bool) -> None:
    """Show a message with all its known values, and its consumers."""
    body = None if charset is None else message.body.decode(charset, "replace")
    facts = message_facts(
        message, write_private_file(message.unique_key or message.msg_id, message.body), with_id=with_id
    )
    if body is not None:
        facts["Message Body"] = body
    tracks = await _tracks(admin, message)
    text = "\n".join(f"{name + ':':<20} {text_or_null(value)}" for name, value in facts.items())
    lines = "\n".join(map(_track_text, tracks)) or "WARN: No Consumer"
    admin.say(
        f"{text}\n\n\n{lines}",
        **{_json_name(name): value for name, value in facts.items()},
        tracks=[{"consumerGroup": one.consumer_group, "trackType": one.track_type} for one in tracks],
    )


def _track_text(track: MessageTrack) -> str:
    """Return the text of Apache's MessageTrack."""
    return (
        f"MessageTrack [consumerGroup={track.consumer_group}, trackType={track.track_type}, "
        f"exceptionDesc={text_or_null(track.exception_desc)}]"
    )


async def _tracks(admin: AdminContext, message: MessageExt) -> list[MessageTrack]:
    try:
        return await message_tracks(admin, message)
    except (ProtocolError, RemotingError) as error:
        admin.warn(f"consumers of the message are not known: {error}")
        return []


def message_facts(message: MessageExt, body_path: str, *, with_id: bool) -> dict[str, str | int | None]:
    """Return the printed values of a message, by their names."""
    keys = " ".join(message.keys) or None
    facts: dict[str, str | int | None] = {OFFSET_ID: message.msg_id} if with_id else {}
    return facts | {
        "Topic": message.topic,
        "Tags": f"[{text_or_null(message.tags)}]",
        "Keys": f"[{text_or_null(keys)}]",
        "Queue ID": message.queue_id,
        "Queue Offset": message.queue_offset,
        "CommitLog Offset": message.physical_offset,
        "Reconsume Times": message.reconsume_times,
        "Born Timestamp": time_text(message.born_timestamp),
        "Store Timestamp": time_text(message.store_timestamp),
        "Born Host": message.born_host,
        "Store Host": message.store_host,
        "System Flag": message.sys_flag,
        "Properties": map_text(message.properties),
        "Message Body Path": body_path,
    }


def _json_name(name: str) -> str:
    return "offsetMsgId" if name == OFFSET_ID else wire_name(name.lower().replace(" ", "_"), {})


async def _consume_directly(admin: AdminContext, line: CommandLine, message: MessageExt) -> None:
    """Hand a message to one member of a group, which answers with its listener's result."""
    group, client_id = line.value("g"), line.value("d")
    if not is_push_type(await running_info(admin, group, client_id)):
        admin.say(f"this {client_id} client is not push consumer ,not support direct push ", clientId=client_id)
        return
    header = ConsumeMessageDirectlyResultRequestHeader(
        consumer_group=group, client_id=client_id, topic=line.value("t"), msg_id=message.msg_id
    )
    result = await admin.ask(
        message.store_host, ConsumeMessageDirectlyResult, RequestCode.CONSUME_MESSAGE_DIRECTLY, header
    )
    admin.say(direct_result_text(result), consumeResult=result.consume_result, spentTimeMills=result.spent_time_mills)


async def _send_again(admin: AdminContext, message_id: str, message: MessageExt) -> None:
    copy = Message(message.topic, message.body, message.flag, dict(message.properties))
    admin.say(f"prepare resend msg. originalMsgId={message_id}")
    result = await send_once(admin, copy, "ReSendMsgById")
    admin.say(send_result_text(result), msgId=result.msg_id, offsetMsgId=result.offset_msg_id)


_ROW = "{:<10} {:<20} {:<20} {:<20} {:<10} {:<10}"
PUBLISHED = TextTable.of(
    _ROW, type="#Type", group="#ProducerGroup", clientHost="#ClientHost",
    time="#SendTime", costTime="#CostTimes", status="#Status",
)  # fmt: skip
CONSUMED = TextTable.of(
    _ROW, type="#Type", group="#ConsumerGroup", clientHost="#ClientHost",
    time="#ConsumerTime", costTime="#CostTimes", status="#Status",
)  # fmt: skip


async def query_msg_trace_by_id(admin: AdminContext, line: CommandLine) -> None:
    message_id = line.value("i")
    found = await messages_of_key(
        admin,
        line.value("t") or TRACE_TOPIC,
        message_id,
        line.number("c", 64),
        line.number("b", 0),
        line.number("e", FOREVER_MS),
    )
    shown = [one for message in found for one in traces_of(message, message_id)]
    traces = [(trace, host) for trace, host in shown if isinstance(trace, PublishTrace | ConsumeEndTrace)]
    for trace, host in traces:
        if isinstance(trace, PublishTrace):
            admin.say(PUBLISHED.head)
            _row(admin, PUBLISHED, "Pub", trace, host)
            admin.say("")
    consumed = [(trace, host) for trace, host in traces if isinstance(trace, ConsumeEndTrace)]
    for group in hash_order(trace.group for trace, _ in consumed):
        admin.say(CONSUMED.head)
        for trace, host in consumed:
            if trace.group == group:
                _row(admin, CONSUMED, "Sub", trace, host)
        admin.say("")


def _row(admin: AdminContext, table: TextTable, kind: str, trace: PublishTrace | ConsumeEndTrace, host: str) -> None:
    status = "success" if trace.success else "failed"
    admin.row(table, kind, trace.group, host, date_text(trace.timestamp), f"{trace.cost_ms}ms", status)
