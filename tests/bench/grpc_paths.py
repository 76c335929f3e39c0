"""The hot paths of the gRPC port whose instructions are counted: a call's frames go into a connection, its answer comes out.

The frames are those of h2's client side, with the headers that Apache's Java client 5.2.0 sends: they have a priority, and no
text is Huffman-coded. The broker is that of `count_paths`.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes

from tests.bench.count_paths import BATCH, START_SECONDS, CountedPath, LastWrite, Prepared, counted_broker
from twisted_mq.access.server_access import NOBODY_IS_ASKED
from twisted_mq.broker.grpc_port import grpc_port
from twisted_mq.broker.request_table import served_requests
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.layouts.grpc_frame import GRPC_HEAD
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.grpc.framing import MessageDecoder, frame
from twisted_mq.proxy.plain_sends import read_plain

TOPIC, GROUP = {"name": "Bench"}, {"name": "bench_consumer"}
WIDE = 2**31 - 1
OK = b"\x08\xa0\x9c\x01"
"""Status.code 20000 as protobuf writes it."""


class Client:
    """Makes the frames of calls. `connection` is the server's side, `written` what it wrote last."""

    def __init__(self, folder: str) -> None:
        self.broker: Any = counted_broker(folder)
        self.broker.topics.update([TopicConfig("Bench", 4, 4)])
        port = grpc_port(self.broker, served_requests(self.broker), NOBODY_IS_ASKED, 10, 8081)
        port.factory.expect = None
        transport = LastWrite()
        self.written: deque[bytes] = transport.kept
        connection = port.factory.buildProtocol(None)
        assert connection is not None
        self.connection = connection
        connection.makeConnection(transport)  # type: ignore[no-untyped-call]
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._h2.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = WIDE
        self._h2.encoder.encode = partial(self._h2.encoder.encode, huffman=False)  # type: ignore[method-assign]
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(WIDE - 65_535)
        self._calls = 0
        self._advance: Callable[[float], None] = self.broker.clock.advance
        self.hand_in(self._h2.data_to_send())
        self._h2.receive_data(self.written[-1])
        self._h2.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = (
            WIDE  # answers are not read, so no stream ends here
        )
        self._h2.remote_settings.acknowledge()
        self.hand_in(self._h2.data_to_send())

    def hand_in(self, data: bytes) -> None:
        """Give the server the bytes of one read, and the turn of the reactor after it."""
        self.connection.dataReceived(data)
        self._advance(0)

    def call(self, name: str, *, end: bool = True, **fields: Any) -> bytes:
        """Return the frames of a call."""
        self._calls += 1
        stream_id = self._h2.get_next_available_stream_id()
        self._h2.send_headers(
            stream_id,
            [
                (":authority", "IPAuthority"),
                (":path", f"/{v2.SERVICE}/{name}"),
                (":method", "POST"),
                (":scheme", "http"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                ("user-agent", "grpc-java-netty/1.50.0"),
                ("x-mq-language", "JAVA"),
                ("x-mq-protocol", "v2"),
                ("x-mq-client-version", "5.2.0"),
                ("x-mq-date-time", "20261124T101112Z"),
                ("x-mq-request-id", f"{self._calls:08x}-a786-4fdd-895a-{self._calls:012x}"),
                ("x-mq-client-id", "bench@1@0@7v1irc1xv"),
                ("x-mq-namespace", ""),
                ("grpc-accept-encoding", "gzip"),
                ("grpc-timeout", f"{9_999_999 - self._calls % 500}u" if end else "9H"),
            ],
            priority_weight=16,
        )
        request = v2.message_class(v2.METHODS[name][0])(**fields)
        self._h2.send_data(stream_id, frame(request.SerializeToString()), end_stream=end)
        return cast(bytes, self._h2.data_to_send())

    def sends(self, count: int) -> list[bytes]:
        """Return sends of one message of 128 bytes each."""
        return [
            self.call(
                "SendMessage",
                messages=[
                    {
                        "topic": TOPIC,
                        "body": b"x" * 128,
                        "system_properties": {
                            "message_id": f"01{number:032X}",
                            "tag": "TagA",
                            "message_type": 1,
                            "body_encoding": 1,
                            "born_host": "bench",
                            "born_timestamp": {"seconds": int(START_SECONDS)},
                            "queue_id": number % 4,
                        },
                    }
                ],
            )
            for number in range(count)
        ]

    def receives(self, count: int, messages: int = BATCH) -> list[bytes]:
        """Return receives of so many messages each."""
        return [
            self.call(
                "ReceiveMessage",
                group=GROUP,
                message_queue={"topic": TOPIC},
                batch_size=messages,
                invisible_duration={"seconds": 30},
                filter_expression={"type": 1, "expression": "*"},
                long_polling_timeout={"seconds": 5},
            )
            for _ in range(count)
        ]

    def acks(self, handles: Iterable[str]) -> list[bytes]:
        """Return acknowledgements of one message each."""
        return [
            self.call("AckMessage", group=GROUP, topic=TOPIC, entries=[{"message_id": "01", "receipt_handle": handle}])
            for handle in handles
        ]

    def produce(self) -> None:
        """Send the settings of a producer."""
        settings = {"client_type": v2.ClientType.PRODUCER, "publishing": {"topics": [TOPIC]}}
        self.hand_in(self.call("Telemetry", end=False, settings=settings))

    def consume(self) -> None:
        """Send the settings of a simple consumer."""
        settings = {
            "client_type": v2.ClientType.SIMPLE_CONSUMER,
            "request_timeout": {"seconds": 3},
            "subscription": {"group": GROUP, "subscriptions": [{"topic": TOPIC, "expression": {"expression": "*"}}]},
        }
        self.hand_in(self.call("Telemetry", end=False, settings=settings))

    def received(self) -> list[str]:
        """Return the handles of the messages in the last write."""
        answers = MessageDecoder(1 << 30).receive_data(data_of(self.written[-1]))
        answers = [v2.ReceiveMessageResponse.FromString(one) for one in answers]
        return [one.message.system_properties.receipt_handle for one in answers if one.HasField("message")]


def data_of(written: bytes) -> bytes:
    """Return the content of the DATA frames in a write."""
    content, at = b"", 0
    while at < len(written):
        length, kind = int.from_bytes(written[at : at + 3], "big"), written[at + 3]
        if kind == 0:
            content += written[at + 9 : at + 9 + length]
        at += 9 + length
    return content


def frames_of(data: bytes) -> list[bytes]:
    """Return the frames in data."""
    found, at = [], 0
    while at < len(data):
        end = at + 9 + int.from_bytes(data[at : at + 3], "big")
        found.append(data[at:end])
        at = end
    return found


def prepare_sends(folder: str, count: int) -> Prepared:
    """A producer that waits for each answer: a read has one call."""
    client = Client(folder)
    client.produce()
    return Prepared(client.hand_in, client.sends(count), client.written, client.broker.store.close)


def prepare_busy_sends(folder: str, count: int) -> Prepared:
    """So many calls a read as many producers on one connection bring about: all headers come first, then all messages."""
    client = Client(folder)
    client.produce()
    return Prepared(client.hand_in, busy_reads(client.sends(count * BATCH)), client.written, client.broker.store.close)


def busy_reads(calls: Iterable[bytes]) -> list[bytes]:
    """Return reads of 32 calls each: all headers, then all messages."""
    framed = [frames_of(call) for call in calls]
    return [
        b"".join(itertools.chain.from_iterable(zip(*framed[start : start + BATCH], strict=True)))
        for start in range(0, len(framed), BATCH)
    ]


def consuming(folder: str, messages: int) -> Client:
    """Return a consumer for whom so many messages wait."""
    client = Client(folder)
    client.consume()
    client.hand_in(client.receives(1)[0])  # a new group begins behind the last message; this is held until one comes
    for one in client.sends(messages):
        client.hand_in(one)
    return client


def prepare_receives(folder: str, count: int, messages: int = BATCH) -> Prepared:
    """Each receive finds messages."""
    client = consuming(folder, (count + 4) * messages)
    return Prepared(client.hand_in, client.receives(count, messages), client.written, client.broker.store.close)


def prepare_acks(folder: str, count: int) -> Prepared:
    """Each acknowledges another message."""
    client = consuming(folder, count + 4 * BATCH)
    return Prepared(client.hand_in, client.acks(handles_of(client, count)), client.written, client.broker.store.close)


def prepare_busy_acks(folder: str, count: int) -> Prepared:
    """A read acknowledges the messages of a receive, as a consumer with many threads does."""
    client = consuming(folder, (count + 4) * BATCH)
    reads = busy_reads(client.acks(handles_of(client, count * BATCH)))
    return Prepared(client.hand_in, reads, client.written, client.broker.store.close)


def handles_of(client: Client, count: int) -> list[str]:
    """Receive messages; return their handles."""
    handles: list[str] = []
    while len(handles) < count:
        client.hand_in(client.receives(1)[0])
        handles += client.received()
    return handles[:count]


def prepare_frames(folder: str, count: int) -> Prepared:
    """The frames of busy sends alone: nothing is done with their events."""
    client = Client(folder)
    reads = [b"".join(client.sends(BATCH)) for _ in range(count)]
    return Prepared(client.connection._http2.receive, reads, close=client.broker.store.close)


def requests_of(client: Client, count: int) -> list[bytes]:
    """Return encoded SendMessageRequests."""
    return [data_of(call)[GRPC_HEAD.size :] for call in client.sends(count)]


def prepare_requests(folder: str, count: int) -> Prepared:
    """The requests of sends, parsed and checked."""
    client = Client(folder)
    return Prepared(read_plain, requests_of(client, count), close=client.broker.store.close)


def answered(written: bytes, calls: int = 1) -> bool:
    """Return whether so many successes are in one write."""
    return data_of(written).count(OK) >= calls


def found(written: bytes, messages: int = BATCH) -> bool:
    """Return whether a write has so many messages."""
    answers = MessageDecoder(1 << 30).receive_data(data_of(written))
    return sum(v2.ReceiveMessageResponse.FromString(one).HasField("message") for one in answers) == messages


GRPC_PATHS = (
    CountedPath("gRPC send", prepare_sends, answered, 50, 250),
    CountedPath("gRPC send, 32 a read", prepare_busy_sends, partial(answered, calls=BATCH), 3, 11, requests=BATCH),
    CountedPath(
        "frames of a gRPC send", prepare_frames, lambda events: len(events) == 2 * BATCH, 3, 11, requests=BATCH
    ),
    CountedPath("read a gRPC send", prepare_requests, bool, 50, 250),
    CountedPath("gRPC receive of 32", prepare_receives, found, 4, 12, messages=BATCH),
    CountedPath("gRPC receive of 1", partial(prepare_receives, messages=1), partial(found, messages=1), 20, 60),
    CountedPath("gRPC ack", prepare_acks, answered, 50, 150),
    CountedPath("gRPC ack, 32 a read", prepare_busy_acks, partial(answered, calls=BATCH), 3, 11, requests=BATCH),
)
"""In the table's order."""
