"""Connections of gRPC clients from one seed: frames of HTTP/2 that carry calls, some of them damaged or out of place."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from random import Random
from typing import Any

from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.fuzz.frames import damaged
from tests.fuzz.protobuf import TEXTS, changed, filled, nested
from twisted_mq.protocol.layouts.grpc_frame import GRPC_HEAD
from twisted_mq.proxy import messages as v2

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DAMAGED = 0.005
FORBIDDEN = 0.01
"""The share of frames that no client may send there: most of them end the connection."""
ALLOWED = 0.3
"""The share of frames that are no calls, and that a client may send at any time."""
SETTLED = 0.7
"""The share of connections that begin with the settings of a consumer."""
BUSY = 0.05
"""The share of pieces that are many calls of one kind."""
MOST_CALLS = 40
"""The calls of such a piece, at most: more than a server handles together."""
HANDLES = tuple(
    f"{start} {popped} 60000 {revive} {mark} broker-a {queue} {offset} 7"
    for start, popped, revive, mark, queue, offset in (
        (0, 99999999999999, 0, 0, 0, 0), (0, 99999999999999, 1, 0, 0, 1), (1, 99999999999999, 0, 1, 0, 1),
        (0, 99999999999999, 0, 0, 3, 1 << 40), (0, 99999999999999, 77, 0, 0, 0), (0, 1795284884053, 0, 0, 0, 0),
        (0, 99999999999999, 999, 0, 0, 0), ((1 << 63) - 1, (1 << 63) - 60001, 0, 0, 0, 0), (-5, -5, 0, 0, 0, 0),
    )
)  # fmt: skip
"""Receipt handles that look as this broker writes them."""
PLAIN = 2
"""The first handles are handled together with others. Their time is one that no store takes."""
RARE = 0.05
"""The share of calls that are not handled together, for each of several reasons."""
SENT = 3
"""The DATA frames of one call, at most."""
FRAME_HEAD_BYTES = 9
LIMITS = (0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
METADATA = ("x-mq-client-id", "x-mq-language", "x-mq-namespace", "x-mq-channel-id", "x-mq-date-time", "authorization")
HEADERS = {
    "grpc-timeout": ("1S", "0n", "99999999H", "-1S", "1", "9" * 30 + "S"),
    "grpc-encoding": ("gzip", "identity", "br"),
    "content-type": ("application/grpc+proto", "text/html"),
    ":path": ("/", "/a/b", "*"),
    ":method": ("GET", "PUT"),
    **{
        name: ("", "x" * 300, "a,b", "7", "\u00e9", *(text for text in TEXTS if text.isprintable()))
        for name in METADATA
    },
}
"""Headers of a call, with values that HTTP/2 allows."""
FORBIDDEN_HEADERS = (
    ("connection", "close"), ("te", "gzip"), ("X-MQ-A", "b"), (":path", ""), (":status", "200"), ("a", "\x00"), ("a b", "c"),
    ("x-many", "x" * 20_000),
)  # fmt: skip
SETTINGS = {1: (0, 4096, 65536), 2: (0,), 3: (0, 1, 1000), 4: (0, 1, 65535, 0x7FFFFFFF), 5: (16384, 0xFFFFFF), 6: (0, 1 << 31),
            8: (0, 1), 9: (0,), 77: (5,)}  # fmt: skip
"""Numbers of settings, with values that they may have."""


class ClientMaker:
    """The bytes of a client's connections; the same seed makes the same ones."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._encoder = Encoder()
        self._stream_id = -1

    def connection(self, count: int) -> list[bytes]:
        """The preface, and `count` pieces of one connection: calls and frames beside them."""
        random = self._random
        self._encoder, self._stream_id = Encoder(), -1
        self._client_id = random.choice(("fuzz-1", "fuzz-2", "", "x" * 300))
        pieces = [self._settle() if random.random() < SETTLED else self._call()]
        pieces += [self._piece() for _ in range(count - 1)]
        pieces[0] = PREFACE + SettingsFrame(0).serialize() + pieces[0]
        return pieces

    @staticmethod
    def answers(received: bytes) -> int:
        """Return the number of received DATA frames."""
        count = 0
        while len(received) >= FRAME_HEAD_BYTES:
            frame, length = Frame.parse_frame_header(memoryview(received)[:FRAME_HEAD_BYTES])
            count += isinstance(frame, DataFrame)
            received = received[FRAME_HEAD_BYTES + length :]
        return count

    def _piece(self) -> bytes:
        random, share = self._random, self._random.random()
        if share < FORBIDDEN:
            return self._frames(random.choice(FORBIDDEN_FRAMES)(self))
        if share > 1 - BUSY:
            return self._busy()
        piece = self._frames(random.choice(ALLOWED_FRAMES)(self)) if share < ALLOWED else self._call()
        return damaged(random, piece) if random.random() < DAMAGED else piece

    @staticmethod
    def _frames(*frames: Frame) -> bytes:
        return b"".join(one.serialize() for one in frames)

    # calls

    def _settle(self) -> bytes:
        settings = v2.Settings(
            client_type=self._random.randrange(5),
            subscription={"group": {"name": "fuzzers"}, "subscriptions": [{"topic": {"name": "FuzzA"}}]},
        )
        command = v2.TelemetryCommand(settings=settings).SerializeToString()
        return self._headers(self._head("Telemetry")) + self._data(GRPC_HEAD.pack(0, len(command)) + command, end=False)

    def _call(self) -> bytes:
        random = self._random
        name = random.choice((*v2.METHODS, "Nothing"))
        ends = random.random() < 0.95
        begun = self._headers(self._tricked(self._head(name)) if random.random() < 0.15 else self._head(name))
        return begun + self._data(self._message(name), end=ends)

    def _head(self, name: str) -> list[tuple[str, str]]:
        path = f"/{v2.SERVICE}/{name}"
        return [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "mq"), ("te", "trailers"),
            ("content-type", "application/grpc"), ("x-mq-client-id", self._client_id), ("x-mq-language", "JAVA"),
        ]  # fmt: skip

    def _tricked(self, head: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The headers with another value of one, or with one of metadata twice."""
        name, values = self._random.choice(list(HEADERS.items()))
        value = self._random.choice(values).strip()
        if name in METADATA and self._random.random() < 0.3:
            return [*head, (name, value)]
        return sorted([*(one for one in head if one[0] != name), (name, value)], key=lambda one: one[0][0] != ":")

    def _message(self, name: str) -> bytes:
        random = self._random
        request = v2.METHODS.get(name, v2.METHODS["SendMessage"])[0]
        data = filled(v2.message_class(request), random).SerializeToString()
        share = random.random()
        if share < 0.1:
            data = nested(random) if share < 0.03 else changed(data, random)
        packed = random.random() < 0.1
        if packed:
            data = gzip.compress(random.choice((data, data, bytes(1 << 20))))
        length = len(data) if random.random() < 0.97 else random.getrandbits(random.choice((8, 32)))
        return GRPC_HEAD.pack(packed if random.random() < 0.97 else 7, length) + data

    def _busy(self) -> bytes:
        """Many calls of one kind as busy clients make them: all headers, then all messages. Some calls are of other kinds, cut or
        reset.
        """
        random = self._random
        kind = random.choice(("SendMessage", "AckMessage"))
        heads, rest = b"", b""
        for _ in range(random.randrange(2, MOST_CALLS)):
            share = random.random()
            name = kind if share < 0.95 else random.choice(tuple(v2.METHODS))
            heads += self._headers(self._head(name))
            data = (self._send() if name == "SendMessage" else self._ack()).SerializeToString()
            most = 1 if share > 0.06 else SENT
            rest += self._data(GRPC_HEAD.pack(0, len(data)) + data, share > 0.02, most)
            if share < 0.04:
                rest += self._frames(self._reset())
        return heads + rest

    def _send(self) -> Any:
        """A send; most of them are plain."""
        random = self._random
        system = {"message_id": f"01{random.getrandbits(64):X}", "message_type": 1}
        body = b"x" * random.choice((1, 100))
        if random.random() < RARE:
            system |= {"message_type": random.randrange(6), "tag": random.choice(TEXTS)}
            body = body[1:]
        message = {"topic": {"name": "FuzzA"}, "body": body, "system_properties": system}
        return v2.SendMessageRequest(messages=[message] * (random.choice((0, 2)) if random.random() < RARE else 1))

    def _ack(self) -> Any:
        """An acknowledgement of messages that may not have been popped."""
        random = self._random
        handles = random.choices(HANDLES, k=random.choice((0, 2)) if random.random() < RARE else 1)
        if random.random() > RARE:
            handles = handles and [random.choice(HANDLES[:PLAIN])]
        entries = [{"message_id": random.choice(("01", "")), "receipt_handle": one} for one in handles]
        return v2.AckMessageRequest(group={"name": "fuzzers"}, topic={"name": "FuzzA"}, entries=entries)

    def _headers(self, head: list[tuple[str, str]]) -> bytes:
        """HEADERS of the next stream, sometimes with CONTINUATION."""
        self._stream_id += 2
        block = self._encoder.encode(head)
        cut = self._random.randrange(len(block)) if self._random.random() < 0.1 else len(block)
        first = HeadersFrame(self._stream_id, block[:cut])
        if cut == len(block):
            first.flags.add("END_HEADERS")
            return first.serialize()
        rest = ContinuationFrame(self._stream_id, block[cut:])
        rest.flags.add("END_HEADERS")
        return self._frames(first, rest)

    def _data(self, data: bytes, end: bool, most: int = SENT) -> bytes:
        """At most so many DATA frames of the last stream, cut anywhere."""
        cuts = sorted(self._random.randrange(len(data) + 1) for _ in range(self._random.randrange(most)))
        frames = [
            DataFrame(self._stream_id, data[begin:until])
            for begin, until in zip((0, *cuts), (*cuts, len(data)), strict=True)
        ]
        if end:
            frames[-1].flags.add("END_STREAM")
        return self._frames(*frames)

    # frames beside calls

    def _some_stream(self) -> int:
        """A stream that was begun."""
        return self._random.randrange(1, max(self._stream_id, 1) + 1, 2)

    def _setting(self) -> Frame:
        number, values = self._random.choice(list(SETTINGS.items()))
        return SettingsFrame(0, {number: self._random.choice(values)})

    def _ping(self) -> Frame:
        return PingFrame(0, self._random.randbytes(8), flags=self._random.choice(((), ("ACK",))))

    def _reset(self) -> Frame:
        return RstStreamFrame(self._some_stream(), error_code=self._random.randrange(16))

    def _window(self) -> Frame:
        stream_id = self._random.choice((0, self._some_stream()))
        return WindowUpdateFrame(stream_id, window_increment=self._random.choice((1, 1000, 1 << 20)))

    def _priority(self) -> Frame:
        return PriorityFrame(self._some_stream(), depends_on=0, stream_weight=self._random.randrange(256))

    def _trailers(self) -> Frame:
        block = self._encoder.encode([("x", "y")])
        return HeadersFrame(self._some_stream(), block, flags=("END_HEADERS", "END_STREAM"))

    def _lone_continuation(self) -> Frame:
        return ContinuationFrame(self._some_stream(), self._random.randbytes(20))

    def _empty_data(self) -> Frame:
        return DataFrame(self._random.choice((self._some_stream(), self._stream_id + 2)))

    def _goodbye(self) -> Frame:
        return GoAwayFrame(0, last_stream_id=self._random.choice(LIMITS) & 0x7FFFFFFF, error_code=0)

    def _wide_window(self) -> Frame:
        return WindowUpdateFrame(self._some_stream(), window_increment=0x7FFFFFFF)

    def _wrong_setting(self) -> Frame:
        return SettingsFrame(0, {self._random.randrange(1, 9): self._random.choice(LIMITS)})

    def _forbidden_headers(self) -> Frame:
        self._stream_id += 2
        head = [*self._head("SendMessage"), self._random.choice(FORBIDDEN_HEADERS)]
        if self._random.random() < 0.3:
            head = self._random.sample(head, self._random.randrange(1, len(head)))
        return HeadersFrame(self._stream_id, self._encoder.encode(head), flags=("END_HEADERS",))

    def _headers_that_are_none(self) -> Frame:
        self._stream_id += 2
        return HeadersFrame(self._stream_id, self._random.randbytes(30), flags=("END_HEADERS",))


Make = Callable[[ClientMaker], Frame]
ALLOWED_FRAMES: tuple[Make, ...] = (
    ClientMaker._setting, ClientMaker._ping, ClientMaker._reset, ClientMaker._window, ClientMaker._priority,
)  # fmt: skip
FORBIDDEN_FRAMES: tuple[Make, ...] = (
    ClientMaker._trailers, ClientMaker._lone_continuation, ClientMaker._empty_data, ClientMaker._goodbye,
    ClientMaker._wide_window, ClientMaker._wrong_setting, ClientMaker._forbidden_headers, ClientMaker._headers_that_are_none,
)  # fmt: skip
