"""The broker's hot paths whose instructions are counted: a table, and what makes each one's requests and hands them in.

Frames go into a remoting channel and come out of it at a transport that keeps the last write; the store's files lie in a
temporary folder. Nothing depends on time or chance: the clock stands still, the broker's random numbers are seeded, the
flush thread sleeps for an hour, and the index, which a broker builds in steps of some hundred messages, has a path of its
own and is off in the others.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import pytest
from twisted.internet.task import Clock

from tests.bench.bench_broker import Sink, batches, make_broker, pulls, sends, traffic_of
from twisted_mq.access.accounts import Accounts
from twisted_mq.access.names import ResourceNames
from twisted_mq.access.server_access import NOBODY_IS_ASKED, ServerAccess
from twisted_mq.access.user_access import UserAccess
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.processors.send import SendAnswers, SendMessageProcessor
from twisted_mq.broker.processors.send_checks import not_stored
from twisted_mq.broker.schedule.timer_service import MESSAGES_A_TURN
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.names.system_topics import HALF_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.protocol.wire.signature import Credentials, sign
from twisted_mq.reactor_threads import at_once
from twisted_mq.remoting.socket_channel import SocketChannel
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus
from twisted_mq.storage.tables.small_tables import AccessTable

START_SECONDS = 1_795_217_217.0
HOUR_MS = 3_600_000
BATCH, QUEUES = 32, 4
PUT_OK, SUCCESS = PutStatus.PUT_OK, int(ResponseCode.SUCCESS)
INDEX_STEP = 1600
REPLICA_STEP = 448
"""Messages of some 128 KiB."""
"""Messages of 128 bytes that a broker indexes at a time (storage.index_builder.LAG_BYTES)."""
RAGGED = [64 + number * 37 % 129 for number in range(BATCH)]
"""Body lengths without two neighbours alike, 127.5 bytes on average."""


ONE_SECOND = "DELAY\x011\x02"
TWO_SECONDS = "TIMER_DELAY_SEC\x012\x02"
HALF = "TRAN_MSG\x01true\x02PGROUP\x01bench_producer\x02"
"""Properties of messages that wait."""
TEN_TOPICS = [f"Bench{number}" for number in range(10)]
"""Topics whose sends take turns."""


class StoppedClock(Clock):
    """Always says the same time, as fast as the reactor's: without Python code."""

    seconds = partial(float, START_SECONDS)

    def now_ms(self) -> int:
        return int(self.seconds() * 1000)


class LastWrite(Sink):
    """A transport that keeps what was written last."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: deque[bytes] = deque(maxlen=1)
        self.write = self.kept.append  # type: ignore[method-assign, assignment]


@attrs.define(eq=False)
class Prepared:
    """Everything made that `call` takes, one piece at a time; `answers` holds the last one where a transport gets them."""

    call: Callable[[Any], object]
    pieces: Sequence[Any]
    answers: deque[bytes] = attrs.field(factory=deque)
    close: Callable[[], None] = lambda: None

    def run(self, count: int) -> Any:
        """Hand in the first pieces, in a loop without Python code; what came of the last one."""
        last = deque(map(self.call, itertools.islice(self.pieces, count)), maxlen=1)
        return self.answers[-1] if self.answers else last[-1]


@attrs.frozen
class CountedPath:
    """A path is run with `few` and with `many` pieces. `prepare` makes as many as it is asked for, in an empty folder.

    A piece holds `requests`, each of them about `messages`; `succeeded` looks at what came of the last piece.
    """

    name: str
    prepare: Callable[[str, int], Prepared]
    succeeded: Callable[[Any], bool]
    few: int
    many: int
    requests: int = 1
    messages: int = 1


# What makes them


def counted_broker(folder: str, clock: StoppedClock | None = None, **config_of_store: Any) -> BrokerController:
    """A broker on which nothing happens but what is asked of it."""
    clock = clock or StoppedClock()
    fields = {"message_index_enable": False, "flush_interval_commit_log_ms": HOUR_MS, **config_of_store}
    broker = make_broker(folder, clock, clock.now_ms, **fields)
    broker.random.seed(0)
    return broker


def asked(
    folder: str,
    frames: Iterable[bytes],
    before: Iterable[bytes] = (),
    *,
    figures: bool = False,
    access: ServerAccess = NOBODY_IS_ASKED,
) -> Prepared:
    """A broker's channel for these reads, `before` already read. With `figures` as where they are shown (PROM)."""
    broker: Any = counted_broker(folder)
    broker.access = access
    if figures:
        broker.statistics.measure(broker.clock.seconds)
    channel, transport = (
        SocketChannel(traffic_of(broker)),
        LastWrite(),
    )
    channel.makeConnection(transport)  # type: ignore[no-untyped-call]
    for frame in before:
        channel.dataReceived(frame)
    return Prepared(channel.dataReceived, list(frames), transport.kept, broker.store.close)


def prepare_sends(folder: str, count: int, serialize_type: int) -> Prepared:
    """A sender that waits for each answer: a read has one frame."""
    return asked(folder, sends(count, serialize_type))


def prepare_measured_sends(folder: str, count: int, serialize_type: int) -> Prepared:
    """The same where figures are shown: sizes and times are noted."""
    return asked(folder, sends(count, serialize_type), figures=True)


def prepare_signed_sends(folder: str, count: int, serialize_type: int, frames_a_read: int = 1) -> Prepared:
    """The same with a user whose signature and rights the broker checks."""
    accounts = Accounts.load(AccessTable(f"{folder}/access.json"))
    accounts.create_user(UserInfo("bench", "bench-secret", "Normal"))
    rule = PolicyEntryInfo(resource="Topic:*", actions=["Pub"], decision="Allow")
    accounts.put_policies("User:bench", AclInfo("User:bench", [PolicyInfo("Custom", [rule])]))
    names = ResourceNames("DefaultCluster", at_once)
    access = UserAccess(accounts=accounts, names=names, authenticates=True, authorizes=True)
    credentials = Credentials("bench", "bench-secret")
    frames = [signed(frame, credentials) for frame in sends(count * frames_a_read, serialize_type)]
    reads = (b"".join(frames[start : start + frames_a_read]) for start in range(0, len(frames), frames_a_read))
    return asked(folder, reads, access=ServerAccess((access,)))


def signed(frame: bytes, credentials: Credentials) -> bytes:
    (command,) = FrameDecoder().receive_data(frame)
    sign(command, credentials)
    return encode_frame(command)


def prepare_uncounted_sends(folder: str, count: int, serialize_type: int) -> Prepared:
    """The same without any statistics, and without the call that counts: what these cost is the difference."""

    def stored(self: Any, command: Any, message: Any, result: PutResult, sent: Any = None) -> Any:
        if result.status is not PUT_OK:
            raise not_stored(self._broker.options, result)
        if self._has_to_wait and message.property_map.get("WAIT") != "false":
            return self._when_durable(command, message, result, sent or self._answers.sent)
        return (sent or self._answers.sent)(command, message, result, SUCCESS)

    patches = pytest.MonkeyPatch()
    patches.setattr(SendMessageProcessor, "_stored", stored)
    prepared = asked(folder, sends(count, serialize_type))

    def close() -> None:
        patches.undo()
        prepared.close()

    return attrs.evolve(prepared, close=close)


def prepare_busy_sends(folder: str, count: int, **more: Any) -> Prepared:
    """So many frames a read as many senders bring about."""
    frames = list(sends(count * BATCH, **more))
    return asked(folder, (b"".join(frames[start : start + BATCH]) for start in range(0, len(frames), BATCH)))


def due_broker(folder: str, count: int, asked: str) -> tuple[StoppedClock, BrokerController]:
    """A broker with messages that wait for a time."""
    clock = StoppedClock()
    broker = counted_broker(folder, clock)
    channel = SocketChannel(traffic_of(broker))
    channel.makeConnection(LastWrite())  # type: ignore[no-untyped-call]
    for frame in sends(count, 0, asked=asked):
        channel.dataReceived(frame)
    broker.dispatch()
    return clock, broker


def prepare_deliveries(folder: str, count: int) -> Prepared:
    """Turns of a delay level whose messages have all become due."""
    clock, broker = due_broker(folder, count * BATCH, ONE_SECOND)
    clock.seconds = partial(float, START_SECONDS + 2)  # type: ignore[assignment]
    turn = broker.waiting.schedule.turn
    return Prepared(lambda _: turn() and not broker.dispatch(), [None] * count, close=broker.store.close)


def prepare_recordings(folder: str, count: int) -> Prepared:
    """Turns of the timer that put messages on the wheel."""
    _, broker = due_broker(folder, count * BATCH, TWO_SECONDS)
    turn = broker.waiting.timer.turn
    return Prepared(lambda _: turn(), [None] * count, close=broker.store.close)


def prepare_ticks(folder: str, count: int) -> Prepared:
    """Turns of the timer that deliver messages of one tick."""
    clock, broker = due_broker(folder, count * MESSAGES_A_TURN, TWO_SECONDS)
    turn = broker.waiting.timer.turn
    while turn():
        pass
    clock.seconds = partial(float, START_SECONDS + 4)  # type: ignore[assignment]
    return Prepared(lambda _: turn() and not broker.dispatch(), [None] * count, close=broker.store.close)


def prepare_commits(folder: str, count: int, *, next_sends: bool = False) -> Prepared:
    """Reads with the ends of transactions, which nobody answers; with the next transaction's send behind each."""
    _, broker = due_broker(folder, count * BATCH, HALF)
    channel = SocketChannel(traffic_of(broker))
    channel.makeConnection(LastWrite())  # type: ignore[no-untyped-call]
    entries = broker.store.queue_entries(HALF_TOPIC, 0, 0, count * BATCH)
    frames = [*commits(at for at, _, _ in entries)]
    if next_sends:
        frames = [ended + sent for ended, sent in zip(frames, sends(len(frames), 0, asked=HALF), strict=True)]
    reads = [b"".join(frames[start : start + BATCH]) for start in range(0, len(frames), BATCH)]

    def call(read: bytes) -> int:
        channel.dataReceived(read)
        return sum(broker.store.max_offset_in_queue("Bench", queue_id) for queue_id in range(QUEUES))

    return Prepared(call, reads, close=broker.store.close)


def commits(places: Iterable[int]) -> Iterator[bytes]:
    """Yield one-way requests that commit the half messages at these places in the log; the first has queue offset 0."""
    for number, place in enumerate(places):
        fields = {"topic": "Bench", "producerGroup": "bench_producer", "tranStateTableOffset": str(number),
                  "commitLogOffset": str(place), "commitOrRollback": "8", "fromTransactionCheck": "false",
                  "msgId": f"C0000202201A4E0E2F2A66E0{number:08X}",
                  "transactionId": f"C0000202201A4E0E2F2A66E0{number:08X}", "bname": "broker-a"}  # fmt: skip
        yield encode_frame(
            RemotingCommand(RequestCode.END_TRANSACTION, number, 2, "JAVA", 479, None, ext_fields=fields)
        )


def prepare_batches(folder: str, count: int, body_lengths: Sequence[int]) -> Prepared:
    """Batches of messages of these lengths."""
    return asked(folder, batches(count * BATCH, BATCH, body_lengths))


def prepare_pulls(folder: str, count: int, serialize_type: int) -> Prepared:
    """Each pull finds other messages."""
    return asked(folder, pulls(count * BATCH, serialize_type), batches(count * BATCH))


def prepare_tagged_pulls(folder: str, count: int) -> Prepared:
    """Each pull finds other messages that came one by one, every second one of its queue."""
    asked_for = pulls(count * BATCH, expression="TagA", step=2 * BATCH)
    return asked(folder, asked_for, sends(2 * (count + QUEUES - 1) * BATCH, 0, ("TagA", "TagB")))


def pops(count: int) -> Iterator[bytes]:
    """Pops of the queues in turn."""
    born = str(int(START_SECONDS * 1000))
    for number in range(count):
        fields = {"consumerGroup": "bench_consumer", "topic": "Bench", "queueId": str(number % 4), "maxMsgNums": "32",
                  "invisibleTime": "60000", "pollTime": "15000", "bornTime": born, "initMode": "0", "expType": "TAG",
                  "exp": "*", "order": "false"}  # fmt: skip
        request = RemotingCommand(RequestCode.POP_MESSAGE, number, language="JAVA", ext_fields=fields)
        yield encode_frame(request)


def prepare_pops(folder: str, count: int) -> Prepared:
    """Each pop finds messages, and writes a check point."""
    return asked(folder, pops(count), batches(count * BATCH))


def prepare_index(folder: str, count: int) -> Prepared:
    """A store that was opened with more messages than its index knows."""
    filled = asked(folder, (), batches((count + 1) * INDEX_STEP))
    filled.close()
    store: Any = counted_broker(folder, message_index_enable=True).store
    record_bytes = store.max_physical_offset() // ((count + 1) * INDEX_STEP)
    return Prepared(store.build_index, [record_bytes * INDEX_STEP] * count, close=store.close)


def prepare_replication(folder: str, count: int) -> Prepared:
    """A slave's store that gets its master's bytes, and makes them visible."""
    master = counted_broker(f"{folder}/master")
    channel = SocketChannel(traffic_of(master))
    channel.makeConnection(LastWrite())  # type: ignore[no-untyped-call]
    for frame in sends(count * REPLICA_STEP, 0, ("TagA", "TagB")):
        channel.dataReceived(frame)
    log = bytes(master.store.read_log(0, master.store.max_physical_offset()) or b"")
    step = len(log) // count
    store = counted_broker(f"{folder}/slave").store

    def call(begin: int) -> int:
        store.append_log(begin, log[begin : begin + step])
        while store.dispatch():
            pass
        return store.max_offset_in_queue("Bench", QUEUES - 1)

    return Prepared(call, range(0, len(log), step), close=store.close)


def prepare_decoding(folder: str, count: int, serialize_type: int) -> Prepared:
    """From a frame to a send's header."""
    receive, read = FrameDecoder().receive_data, fast_header(SendMessageRequestHeaderV2)

    def decode(frame: bytes) -> Any:
        (command,) = receive(frame)
        return read(command)

    return Prepared(decode, list(sends(count, serialize_type)))


def prepare_encoding(folder: str, count: int, serialize_type: int) -> Prepared:
    """From what the store says to the answer's frame."""
    request = RemotingCommand(RequestCode.SEND_MESSAGE_V2, 7, serialize_type=serialize_type)
    message = InnerMessage("Bench", 1, b"", b"", {"UNIQ_KEY": "C0000202201A4E0E2F2A66E000000000"}, 0)
    sent = SendAnswers(pack_host("127.0.0.1", 10911), "DefaultRegion").sent
    results = [PutResult(PutStatus.PUT_OK, number, number * 330) for number in range(count)]
    return Prepared(partial(sent, request, message, code=ResponseCode.SUCCESS), results)


# What must come out


def answered(written: bytes, frames: int = 1) -> bool:
    """So many successes in one write."""
    answers = FrameDecoder().receive_data(written)
    return [answer.code for answer in answers] == [ResponseCode.SUCCESS] * frames


def found(written: bytes) -> bool:
    """An answer with a batch's worth of messages."""
    (answer,) = FrameDecoder().receive_data(written)
    return (answer.code, answer.remark, len(list(iterate_messages(answer.body)))) == (0, "FOUND", BATCH)


def is_header(header: Any) -> bool:
    """The last send's header, whole."""
    return (header.topic, header.producer_group, header.default_topic_queue_nums) == ("Bench", "bench_producer", 4)


_json: dict[str, Any] = {"serialize_type": 0}
_binary: dict[str, Any] = {"serialize_type": 1}
_together = partial(CountedPath, succeeded=partial(answered, frames=BATCH), few=8, many=40, requests=BATCH)
PATHS = (
    CountedPath("send, JSON", partial(prepare_sends, **_json), answered, 200, 1000),
    CountedPath("send, ROCKETMQ", partial(prepare_sends, **_binary), answered, 200, 1000),
    CountedPath("send, JSON, figures shown", partial(prepare_measured_sends, **_json), answered, 200, 1000),
    CountedPath("send, JSON, signed", partial(prepare_signed_sends, **_json), answered, 200, 1000),
    CountedPath("send, JSON, nothing counted", partial(prepare_uncounted_sends, **_json), answered, 200, 1000),
    _together("send, JSON, 32 a read", partial(prepare_busy_sends, **_json)),
    _together("send, ROCKETMQ, 32 a read", partial(prepare_busy_sends, **_binary)),
    _together("send, JSON, ragged, 32 a read", partial(prepare_busy_sends, body_lengths=RAGGED, **_json)),
    _together("send, JSON, 10 topics, 32 a read", partial(prepare_busy_sends, topics=TEN_TOPICS, **_json)),
    _together("send, JSON, delayed, 32 a read", partial(prepare_busy_sends, asked=ONE_SECOND, **_json)),
    _together("send, JSON, timed, 32 a read", partial(prepare_busy_sends, asked=TWO_SECONDS, **_json)),
    _together("send, JSON, transactional, 32 a read", partial(prepare_busy_sends, asked=HALF, **_json)),
    CountedPath("deliver 32 of a delay level", prepare_deliveries, bool, 20, 60, messages=BATCH),
    CountedPath("put 32 on the timer's wheel", prepare_recordings, bool, 20, 60, messages=BATCH),
    CountedPath("deliver 64 of the timer", prepare_ticks, bool, 10, 30, messages=MESSAGES_A_TURN),
    CountedPath("commit, JSON, 32 a read", prepare_commits, bool, 8, 24, requests=BATCH),
    CountedPath(
        "commit and send in turn, JSON, 64 a read",
        partial(prepare_commits, next_sends=True),
        bool,
        8,
        24,
        requests=2 * BATCH,
    ),
    _together("send, JSON, signed, 32 a read", partial(prepare_signed_sends, frames_a_read=BATCH, **_json)),
    CountedPath(
        "batch of 32, one length", partial(prepare_batches, body_lengths=[128]), answered, 20, 120, messages=BATCH
    ),
    CountedPath("batch of 32, ragged", partial(prepare_batches, body_lengths=RAGGED), answered, 20, 80, messages=BATCH),
    CountedPath("pull of 32, JSON", partial(prepare_pulls, **_json), found, 60, 360, messages=BATCH),
    CountedPath("pull of 32, ROCKETMQ", partial(prepare_pulls, **_binary), found, 60, 360, messages=BATCH),
    CountedPath("pull of 32, by tag, JSON", prepare_tagged_pulls, found, 60, 180, messages=BATCH),
    CountedPath("pop of 32, JSON", prepare_pops, found, 20, 120, messages=BATCH),
    CountedPath("decode a send, JSON", partial(prepare_decoding, **_json), is_header, 500, 4000),
    CountedPath("decode a send, ROCKETMQ", partial(prepare_decoding, **_binary), is_header, 500, 4000),
    CountedPath("encode its answer, JSON", partial(prepare_encoding, **_json), answered, 500, 4000),
    CountedPath("encode its answer, ROCKETMQ", partial(prepare_encoding, **_binary), answered, 500, 4000),
    CountedPath("index 1600 messages", prepare_index, bool, 2, 8, messages=INDEX_STEP),
    CountedPath("replicate 448 messages", prepare_replication, bool, 2, 8, messages=REPLICA_STEP),
)
"""In the table's order."""
