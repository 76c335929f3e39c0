"""Implements `mqadmin sendMessage`, `sendMsgStatus`, `checkMsgSendRT`, `clusterRT`: send, and show how long it took."""

from __future__ import annotations

import datetime

from twisted_mq.admin.sending import send_once, started_producer
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.java_format import fixed, hash_order
from twisted_mq.cli.admin.java_text import fields_text, queue_text
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.client.core.errors import ClientError
from twisted_mq.client.producing.producer import Producer
from twisted_mq.client.producing.producer_options import SendLimits
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.flags import is_writeable
from twisted_mq.protocol.messages.message import Message
from twisted_mq.remoting.errors import RemotingError

RESULTS = TextTable.of(
    "{:<32}  {:<4}  {:<20}    {}", broker="#Broker Name", queueId="#QID", sendResult="#Send Result", msgId="#MsgId"
)
TIMES = TextTable.of(
    "{:<32}  {:<4}  {:<20}    {}", broker="#Broker Name", queueId="#QID", sendResult="#Send Result", rtMs="#RT"
)
CLUSTERS = TextTable(
    "{:<24}  {:<24}  {:<4}  {:<8}  {:<8}".format("#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount"),
    "{:<24}  {:<24}  {:<8}  {:<16}  {:<16}",
    ("cluster", "broker", "rtMs", "successCount", "failCount"),
)

FAILURES = (ClientError, ProtocolError, RemotingError)
GREETING = "hello jodie"
"""The text that bodies of sendMsgStatus repeat, as in Apache's tool."""
CHINA = datetime.timezone(datetime.timedelta(hours=8))
"""The zone of log lines, as in Apache's tool."""


def send_result_text(result: SendResult) -> str:
    """Return the text of Apache's SendResult."""
    return fields_text(
        "SendResult ",
        "[]",
        sendStatus=result.status.name,
        msgId=result.msg_id,
        offsetMsgId=result.offset_msg_id,
        messageQueue=queue_text(result.queue),
        queueOffset=result.queue_offset,
        recallHandle=result.recall_handle,
    )


async def send_message(admin: AdminContext, line: CommandLine) -> None:
    if "i" in line and "b" not in line:
        raise UsageError("Broker name must be set if the queue is chosen!")
    topic = line.value("t")
    message = Message.make(topic, line.value("p").encode(), line.value("c") or None, line.value("k") or None)
    queue = MessageQueue(topic, line.value("b"), line.number("i", 0)) if "i" in line else None
    result = await send_once(admin, message, str(admin.now_ms()), queue, trace=line.is_true("m"))
    admin.say(RESULTS.head)
    admin.row(RESULTS, result.queue.broker_name, result.queue.queue_id, result.status.name, result.msg_id)


async def send_msg_status(admin: AdminContext, line: CommandLine) -> None:
    topic, size = line.value("b"), body_size(line)
    async with started_producer(admin, "PID_SMSC") as producer:
        await producer.send(Message(topic, greeting(16)))
        for _ in range(line.number("c", 50)):
            began_ms = admin.now_ms()
            result = await producer.send(Message(topic, greeting(size)))
            took_ms = admin.now_ms() - began_ms
            admin.say(f"rt={took_ms}ms, SendResult={send_result_text(result)}", rtMs=took_ms, msgId=result.msg_id)


def body_size(line: CommandLine) -> int:
    """Return the bytes of a message. Raises UsageError for more than a producer sends."""
    size, most = line.number("s", 128), SendLimits().max_message_size
    if not 0 <= size <= most:
        raise UsageError(f"Option -s must be 0 to {most} bytes, got {size}")
    return size


def greeting(size: int) -> bytes:
    """Return a body of that many bytes or some more."""
    return (GREETING * -(-size // len(GREETING))).encode()


async def check_msg_send_rt(admin: AdminContext, line: CommandLine) -> None:
    topic, amount = line.value("t"), line.number("a", 100)
    message = Message(topic, b"a" * body_size(line))
    queues = await _writable_queues(admin, topic)
    admin.say(TIMES.head)
    elapsed_ms = 0
    async with started_producer(admin, str(admin.now_ms())) as producer:
        for number in range(amount):
            queue = queues[number % len(queues)]
            took_ms, failure = await _timed(admin, producer, message, queue)
            elapsed_ms += took_ms if number else 0
            admin.row(TIMES, queue.broker_name, queue.queue_id, failure is None, took_ms)
    average = fixed(elapsed_ms / max(1, amount - 1), 2)
    admin.say(f"Avg RT: {average}", averageRtMs=float(average))


async def _timed(
    admin: AdminContext, producer: Producer, message: Message, queue: MessageQueue | None = None
) -> tuple[int, Exception | None]:
    """Return the time of a send in ms, and why it failed."""
    began_ms = admin.now_ms()
    failure: Exception | None = None
    try:
        await producer.send(message, queue)
    except FAILURES as error:
        failure = error
    return admin.now_ms() - began_ms, failure


async def _writable_queues(admin: AdminContext, topic: str) -> list[MessageQueue]:
    route = await admin.topic_route(topic)
    queues = [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if is_writeable(data.perm)
        for queue_id in range(data.write_queue_nums)
    ]
    if not queues:
        raise UsageError(f"topic {topic} has no queue that takes messages")
    return sorted(queues)


async def cluster_rt(admin: AdminContext, line: CommandLine) -> None:
    """Measure until it is interrupted."""
    as_log = line.is_true("p")
    admin.say(None if as_log else CLUSTERS.head)
    async with started_producer(admin, str(admin.now_ms())) as producer:
        while True:
            await _one_round(admin, line, producer)
            await admin.sleep(line.number("i", 10))


async def _one_round(admin: AdminContext, line: CommandLine, producer: Producer) -> None:
    clusters = (await admin.cluster_info()).cluster_addr_table
    names = [line.value("c")] if "c" in line else hash_order(clusters)
    for cluster_name in names:
        for broker_name in hash_order(clusters.get(cluster_name, ())):
            await _one_broker(admin, line, producer, cluster_name, broker_name)


async def _one_broker(
    admin: AdminContext, line: CommandLine, producer: Producer, cluster_name: str, broker_name: str
) -> None:
    """Send to the topic that each broker has of its own name."""
    amount = line.number("a", 100)
    message = Message(broker_name, b"a" * body_size(line))
    timed = [await _timed(admin, producer, message) for _ in range(amount)]
    failed = sum(failure is not None for _, failure in timed)
    average = sum(took_ms for took_ms, _ in timed[1:]) / max(1, amount - 1)
    if line.is_true("p"):
        now = datetime.datetime.fromtimestamp(admin.now_ms() / 1000, CHINA)
        room = line.value("m") or "noname"
        admin.say(f"{now:%Y-%m-%d %H:%M:%S}|{room}|{cluster_name}|{broker_name}|{fixed(average, 0)}",
                  cluster=cluster_name, broker=broker_name, rtMs=average)  # fmt: skip
    else:
        admin.row(CLUSTERS, cluster_name, broker_name, fixed(average, 2), amount - failed, failed)
