"""Requests of unknown hosts to each port: as large as allowed, with as many small parts as fit, from one and many connections."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator

import attrs
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.cost.bodies import widest
from tests.cost.shapes import COMMON, SHAPES
from tests.fuzz.http2 import PREFACE
from tests.support.broker import BrokerInMemory
from twisted_mq.namesrv.processor import REQUESTS as NAME_SERVER_REQUESTS
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.grpc_frame import GRPC_HEAD
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.proxy import messages as v2

PIPELINED = 1000
MANY = 32
SOME = 8


@attrs.frozen
class Case:
    """Connections to one port, each of which sends the same bytes."""

    port: str
    name: str
    data: Callable[[], bytes]
    connections: int = 1
    code: int | None = None

    @property
    def request(self) -> str:
        """The request's name; empty where bytes are no requests."""
        return "" if self.code is None else RequestCode(self.code).name


def all_cases() -> Iterator[Case]:
    """Every case of every port."""
    yield from shapes()
    for code in sorted(BrokerInMemory().processors):
        yield from of_code("broker", int(code))
    for code in sorted(NAME_SERVER_REQUESTS):
        yield from of_code("name server", int(code))
    for port, cases in OTHERS.items():
        for name, connections, data in cases:
            yield Case(port, name, data, connections)


def shapes() -> Iterator[Case]:
    """The adverse shapes of single requests."""
    for shape in SHAPES:
        frames = _joined(shape.requests)
        yield Case("broker", shape.name, frames, 1, int(shape.code))
        yield Case("broker", f"{shape.name}, {SOME} connections", frames, SOME, int(shape.code))


def _joined(requests: Callable[[], list[RemotingCommand]]) -> Callable[[], bytes]:
    return lambda: b"".join(map(encode_frame, requests()))


def of_code(port: str, code: int) -> Iterator[Case]:
    """General shapes of any request, and its own largest body."""
    spec = REQUESTS.get(RequestCode(code))
    if spec is not None and spec.request_body is not None:
        yield Case(port, "the largest body", _body(code, lambda: widest(spec)), 1, code)
        yield Case(port, f"the largest body, {SOME} connections", _body(code, lambda: widest(spec)), SOME, code)
    for name, body in BODIES.items():
        yield Case(port, name, _body(code, body), 1, code)
    yield Case(port, "10,000 fields", _fields(code, 1, {f"f{number}": "x" for number in range(10_000)}), 1, code)
    separators = dict.fromkeys(("properties", "i", "subscription", "key", "topic"), "a\x01b\x02" * 50_000)
    yield Case(port, "texts of 50,000 parts", _fields(code, 1, separators), 1, code)
    yield Case(port, f"{PIPELINED:,} in one read", _fields(code, PIPELINED), 1, code)
    yield Case(port, f"100 in one read, {MANY} connections", _fields(code, 100), MANY, code)


BODIES: dict[str, Callable[[], bytes]] = {
    "4 MiB of zeros": lambda: bytes(4 << 20),
    "1,000,000 numbers": lambda: b'{"a":[' + b"1," * 999_999 + b"1]}",
    "60,000 brackets": lambda: b"[" * 60_000,
    "1,000,000 lines": lambda: b"a=b\n" * 1_000_000,
    "300,000 objects": lambda: b"[" + b'{"a":{}},' * 299_999 + b"{}]",
}


def _body(code: int, body: Callable[[], bytes]) -> Callable[[], bytes]:
    return lambda: encode_frame(RemotingCommand(code, body=body(), language="JAVA", ext_fields=COMMON))


def _fields(code: int, count: int, more: dict[str, str] | None = None) -> Callable[[], bytes]:
    fields = COMMON | (more or {})
    return lambda: encode_frame(RemotingCommand(code, language="JAVA", ext_fields=fields)) * count


# gRPC


def _call(encoder: Encoder, stream: int, name: str, message: bytes, *, end: bool = True, packed: bool = False) -> bytes:
    head = [
        (":method", "POST"), (":scheme", "http"), (":path", f"/{v2.SERVICE}/{name}"), (":authority", "mq"),
        ("te", "trailers"), ("content-type", "application/grpc"), ("x-mq-client-id", "c"), ("x-mq-language", "JAVA"),
        *((("grpc-encoding", "gzip"),) if packed else ()),
    ]  # fmt: skip
    headers = HeadersFrame(stream, encoder.encode(head), flags=("END_HEADERS",)).serialize()
    data = GRPC_HEAD.pack(packed, len(message)) + message
    frames = [DataFrame(stream, data[first : first + 16_384]) for first in range(0, len(data), 16_384)]
    if end:
        frames[-1].flags.add("END_STREAM")
    return bytes(headers + b"".join(one.serialize() for one in frames))


def _calls(name: str, message: Callable[[], bytes], count: int = 1, *, packed: bool = False) -> Callable[[], bytes]:
    def data() -> bytes:
        encoder, body = Encoder(), message()
        calls = (_call(encoder, 1 + 2 * number, name, body, packed=packed) for number in range(count))
        return bytes(PREFACE + SettingsFrame(0).serialize() + b"".join(calls))

    return data


def _messages() -> bytes:
    one = v2.Message(topic={"name": "Small"}, body=b"x", system_properties={"message_id": "m", "tag": "a"})
    return bytes(v2.SendMessageRequest(messages=[one] * 100_000).SerializeToString())[: 4 << 20]


def _acks() -> bytes:
    entry = v2.AckMessageEntry(message_id="m", receipt_handle="r" * 20)
    return bytes(
        v2.AckMessageRequest(
            group={"name": "G"}, topic={"name": "Small"}, entries=[entry] * 100_000
        ).SerializeToString()
    )


def _subscriptions() -> bytes:
    one = {"topic": {"name": "Small"}, "expression": {"expression": "*"}}
    settings = v2.Settings(client_type=2, subscription={"group": {"name": "G"}, "subscriptions": [one] * 50_000})
    return bytes(v2.TelemetryCommand(settings=settings).SerializeToString())


def _route() -> bytes:
    return bytes(v2.QueryRouteRequest(topic={"name": "T"}).SerializeToString())


def _http2(*frames: bytes) -> Callable[[], bytes]:
    return lambda: PREFACE + SettingsFrame(0).serialize() + b"".join(frames)


def _resets() -> bytes:
    encoder, found = Encoder(), [PREFACE + SettingsFrame(0).serialize()]
    for number in range(5_000):
        found.append(_call(encoder, 1 + 2 * number, "QueryRoute", _route(), end=False))
        found.append(RstStreamFrame(1 + 2 * number, error_code=8).serialize())
    return b"".join(found)


GRPC = (
    ("messages in one SendMessage, 4 MiB", 1, _calls("SendMessage", _messages)),
    ("empty messages in one SendMessage, 16 MiB", 1, _calls("SendMessage", lambda: b"\x0a\x00" * (8 << 20))),
    ("entries in one AckMessage, 100,000", 1, _calls("AckMessage", _acks)),
    ("subscriptions in one Telemetry, 50,000", 1, _calls("Telemetry", _subscriptions)),
    ("gzip of 64 MiB", 1, _calls("SendMessage", lambda: gzip.compress(bytes(64 << 20), 1), packed=True)),
    ("routes of 4,096 queues, 90 calls", 1, _calls("QueryRoute", _route, 90)),
    ("routes of 4,096 queues, 8 connections", SOME, _calls("QueryRoute", _route, 90)),
    ("calls and resets, 5,000", 1, _resets),
    ("pings, 10,000", 1, _http2(PingFrame(0, b"12345678").serialize() * 10_000)),
    ("settings, 10,000", 1, _http2(SettingsFrame(0, {3: 100}).serialize() * 10_000)),
    ("windows, 100,000", 1, _http2(WindowUpdateFrame(0, window_increment=1).serialize() * 100_000)),
    ("continuations, 10,000", 1, _http2(HeadersFrame(1, b"").serialize(), ContinuationFrame(1, b"").serialize() * 10_000)),
    ("nothing, 200 connections", 200, _http2()),
)  # fmt: skip

# HTTP


def _http(line: bytes, headers: bytes = b"", body: bytes = b"", count: int = 1) -> Callable[[], bytes]:
    length = b"content-length: %d\r\n" % len(body) if body else b""
    return lambda: (line + b" HTTP/1.1\r\nhost: a\r\n" + length + headers + b"\r\n" + body) * count


FORM = b"content-type: application/x-www-form-urlencoded\r\n"
PARTS = b"content-type: multipart/form-data; boundary=x\r\n"
MIB = 1 << 20

HTTP: tuple[tuple[str, int, Callable[[], bytes]], ...] = (
    ("a line without end, 4 MiB", 1, lambda: b"GET /" + b"a" * (4 << 20)),
    ("10,000 header lines", 1, _http(b"GET /", b"".join(b"x%d: y\r\n" % number for number in range(10_000)))),
    ("300,000 fields of a form", 1, _http(b"POST /login", FORM, (b"a=b&" * 262_000)[: MIB - 1])),
    ("parts of a form, 1 MiB", 1, _http(b"POST /login", PARTS, (b"--x\r\n\r\n\r\n" * 120_000)[: MIB - 1])),
    ("cookies, 15 KiB", 1, _http(b"GET /", b"cookie: " + b"a=b; " * 3000 + b"\r\n")),
    ("query, 15 KiB", 1, _http(b"GET /topics?" + b"a=b&" * 3800)),
    ("1,000 pipelined", 1, _http(b"GET /health", count=1000)),
    ("1,000 pipelined pages", 1, _http(b"GET /login", count=1000)),
    ("a page each, 200 connections", 200, _http(b"GET /")),
)
METRICS = (
    *HTTP,
    ("scrapes, 100 pipelined", 1, _http(b"GET /metrics", count=100)),
    ("scrapes, 64 connections", 64, _http(b"GET /metrics")),
)

# replication, and what is forwarded

REPORT = (0).to_bytes(8, "big")
HA: tuple[tuple[str, int, Callable[[], bytes]], ...] = (
    ("reports, 500,000", 1, lambda: REPORT * 500_000),
    (
        "reports that confirm a session, 250,000",
        1,
        lambda: ((-2 & (1 << 64) - 1).to_bytes(8, "big") + REPORT) * 250_000,
    ),
    ("noise, 4 MiB", 1, lambda: b"\x7f" * (4 << 20)),
    ("first reports, 100 connections", 100, lambda: REPORT),
    ("half a report, 100 connections", 100, lambda: b"\0" * 7),
)

ROUTE = RemotingCommand(105, language="JAVA", ext_fields={"topic": "T"})
RECORDER: tuple[tuple[str, int, Callable[[], bytes]], ...] = (
    ("frames, 100,000", 1, lambda: encode_frame(RemotingCommand(99_999, language="JAVA")) * 100_000),
    ("one of 16 MiB less its end", 1, lambda: encode_frame(RemotingCommand(10, body=bytes(15 << 20)))[:-1]),
    ("no frames, 4 MiB", 1, lambda: b"\xff" * (4 << 20)),
    ("questions for routes, 20,000", 1, lambda: encode_frame(ROUTE) * 20_000),
    ("nothing, 200 connections", 200, lambda: b""),
)

OTHERS = {"HA": HA, "gRPC": GRPC, "metrics": METRICS, "console": HTTP, "recorder": RECORDER}

# what an address server answers its client with

HEAD = b"HTTP/1.1 200 OK\r\n"
PAGES = {
    "64 KiB of separators": HEAD + b"content-length: 65536\r\n\r\n" + b";" * 65_536,
    "a head without end, 8 MiB": HEAD + b"x: " + b"y" * (8 << 20),
    "1,000,000 header lines": HEAD + b"x: y\r\n" * 1_000_000,
    "1,000,000 answers 100": b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000_000,
    "chunks of a byte, 1,000,000": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1_000_000,
    "a body without end, 64 MiB": HEAD + b"\r\n" + bytes(64 << 20),
    "a chunk's length without end": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1" * (8 << 20),
}
