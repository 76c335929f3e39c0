"""A name server and broker of one topic that answers a client from ready bytes: what is counted beside it is the client's.

It lives in the client's own loop, behind one socket of the loopback, so that whoever reads or writes first is always the same.
"""

from __future__ import annotations

import collections
import socket
import struct
from collections.abc import Callable

import msgspec

from twisted_mq.protocol.bodies import (
    BrokerData,
    GetConsumerListByGroupResponseBody,
    QueueData,
    TopicRouteData,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.headers import (
    PullMessageResponseHeader,
    QueryConsumerOffsetResponseHeader,
    SendMessageResponseHeader,
)
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.wire.answers import answer_encoder

TOPIC, BROKER_NAME = "Bench", "bench"
BODY = b"x" * 128
BATCH = 32
START_MS = 1_795_217_217_000
Watch = Callable[[socket.socket, Callable[[], None]], None]
"""Has a loop call the function whenever the socket can be read, as add_reader does."""


class Asked(msgspec.Struct, gc=False):
    """The parts of a request that its answer needs."""

    code: int
    opaque: int
    extFields: msgspec.Raw = msgspec.Raw(b"")
    serialize_type: int = 0


_decode = msgspec.json.Decoder(Asked).decode
_unpack_head = struct.Struct(">II").unpack_from
_send_answer = answer_encoder(SendMessageResponseHeader, {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"})
_pull_answer = answer_encoder(PullMessageResponseHeader)
_offset_answer = answer_encoder(QueryConsumerOffsetResponseHeader)


def stored_messages(first_offset: int) -> bytes:
    """The body of a pull's answer."""
    host = pack_host("127.0.0.1", 10911)
    properties = b"UNIQ_KEY\x01C0000202201A4E0E2F2A66E0%08X\x02WAIT\x01true\x02"
    return b"".join(
        encode_record(
            TOPIC.encode(), BODY, properties % offset, 0, offset, offset * 300, START_MS, host, START_MS, host
        )
        for offset in range(first_offset, first_offset + BATCH)
    )


class CannedBroker:
    """Takes every send; answers a pull with the next messages when `allow` has said so."""

    def __init__(self, pulls: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.client_id = ""
        """The one member of all groups."""
        self._bodies = collections.deque((number, stored_messages(number * BATCH)) for number in range(pulls))
        self._allowed = 0
        self._waiting: collections.deque[tuple[socket.socket, Asked]] = collections.deque()
        self._connections: list[socket.socket] = []
        self._answers: dict[int, Callable[[Asked], bytes]] = {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._members,
            RequestCode.QUERY_CONSUMER_OFFSET: lambda asked: _offset_answer(asked, 0, None, 0, offset=0),
            RequestCode.SEND_MESSAGE_V2: self._sent,
            RequestCode.SEND_BATCH_MESSAGE: self._sent,
        }

    def serve(self, watch: Watch) -> None:
        """From now on, in the loop that `watch` belongs to."""

        def accept() -> None:
            connection, _ = self._listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
            held = bytearray()
            watch(connection, lambda: self._read(connection, held))

        watch(self._listener, accept)

    def allow(self, pulls: int) -> None:
        """Answer so many more pulls."""
        self._allowed += pulls
        while self._waiting and self._allowed:
            connection, asked = self._waiting.popleft()
            connection.sendall(self._pulled(asked))

    def close(self) -> None:
        """The client is gone."""
        for one in (self._listener, *self._connections):
            one.close()

    def _read(self, connection: socket.socket, held: bytearray) -> None:
        held += connection.recv(1 << 20)
        position, answers = 0, []
        while len(held) - position >= 8:
            length, header_length = _unpack_head(held, position)
            end = position + 4 + length
            if end > len(held):
                break
            asked = _decode(held[position + 8 : position + 8 + header_length])
            position = end
            if asked.code == RequestCode.PULL_MESSAGE and not self._allowed:
                self._waiting.append((connection, asked))
                continue
            answers.append(self._answers.get(asked.code, self._other)(asked))
        del held[:position]
        if answers:
            connection.sendall(b"".join(answers))

    def _sent(self, asked: Asked) -> bytes:
        values = {"msg_id": "7F00000100002A9F0000000000000000", "queue_id": 0, "queue_offset": asked.opaque}
        return _send_answer(asked, 0, None, 0, **values)

    def _other(self, asked: Asked) -> bytes:
        if asked.code == RequestCode.PULL_MESSAGE:
            return self._pulled(asked)
        return _framed(asked, ResponseCode.SUCCESS)

    def _pulled(self, asked: Asked) -> bytes:
        self._allowed -= 1
        number, body = self._bodies.popleft()
        head = _pull_answer(
            asked, 0, "FOUND", len(body), suggest_which_broker_id=0, next_begin_offset=(number + 1) * BATCH,
            min_offset=0, max_offset=1 << 30,
        )  # fmt: skip
        return head + body

    def _route(self, asked: Asked) -> bytes:
        queues = 0 if b"%RETRY%" in bytes(asked.extFields) else 1
        route = TopicRouteData(
            queue_datas=[QueueData(BROKER_NAME, read_queue_nums=queues, write_queue_nums=queues, perm=6)],
            broker_datas=[BrokerData(cluster="c", broker_name=BROKER_NAME, broker_addrs={0: self.address})],
        )
        return _framed(asked, ResponseCode.SUCCESS, encode_body(route))

    def _members(self, asked: Asked) -> bytes:
        body = encode_body(GetConsumerListByGroupResponseBody(consumer_id_list=[self.client_id]))
        return _framed(asked, ResponseCode.SUCCESS, body)


def _framed(asked: Asked, code: int, body: bytes = b"") -> bytes:
    header = b'{"code":%d,"flag":1,"language":"PYTHON","opaque":%d,"version":479}' % (code, asked.opaque)
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body
