"""PROXY headers of both versions, whole, in parts and wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.proxy_header import (
    ADDRESSES,
    FOR_CLIENT,
    FOR_ITSELF,
    HEAD,
    MOST_BYTES,
    MOST_LINE_BYTES,
    SIGNATURE_V2,
    ProxyHeader,
    ProxyHeaderError,
    begins,
    read_proxy_header,
)

LONGEST_LINE = b"PROXY UNKNOWN %b %b 65535 65535\r\n" % ((b"ffff:" * 7 + b"ffff",) * 2)
"""The longest line of version 1 by its specification."""
LINE = b"PROXY TCP4 192.0.2.1 192.0.2.9 56324 8081\r\n"


def binary(family: int, body: bytes, command: int = FOR_CLIENT, length: int | None = None) -> bytes:
    head = {"version_command": command, "family": family, "length": len(body) if length is None else length}
    return HEAD.build({"signature": SIGNATURE_V2, **head}) + body


def addresses(family: int, source: bytes, port: int) -> bytes:
    values = {"source": source, "destination": source, "source_port": port, "destination_port": 8081}
    return ADDRESSES[family].build(values)


V4 = binary(0x11, addresses(0x11, bytes((192, 0, 2, 1)), 56324))
V6 = binary(0x21, addresses(0x21, bytes(15) + b"\x01", 7) + b"\x04\x00\x01x")
HEADERS = {
    LINE: ("192.0.2.1", 56324),
    b"PROXY TCP6 ::1 ::2 1 2\r\n": ("::1", 1),
    b"PROXY UNKNOWN\r\n": None,
    b"PROXY UNKNOWN any words\r\n": None,
    LONGEST_LINE: None,
    V4: ("192.0.2.1", 56324),
    V6: ("::1", 7),
    binary(0x00, b"", FOR_ITSELF): None,
    binary(0x31, bytes(216)): None,
    binary(0x12, bytes(12)): None,
}


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
def test_header_is_read_once_it_is_whole(header: bytes) -> None:
    for size in range(1, len(header)):
        assert begins(header[:size])
        assert read_proxy_header(header[:size]) is None
    assert read_proxy_header(header + b"PRI * HTTP/2.0") == ProxyHeader(len(header), HEADERS[header])


def test_commands_are_those_of_the_specification() -> None:
    """0x20 is LOCAL, 0x21 is PROXY."""
    signature = bytes.fromhex("0d0a0d0a000d0a515549540a")
    assert read_proxy_header(signature + b"\x20\x00\x00\x00") == ProxyHeader(16, None)
    client = b"\x21\x11\x00\x0c" + bytes((192, 0, 2, 1, 192, 0, 2, 9, 0, 7, 0, 8))
    assert read_proxy_header(signature + client) == ProxyHeader(28, ("192.0.2.1", 7))


@pytest.mark.parametrize(
    "data",
    [
        b"PROXY TCP4 192.0.2.\xe9 192.0.2.9 1 8081\r\n",
        b"PROXY TCP4 192.0.2.1\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.9 65536 8081\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.9 -1 8081\r\n",
        b"PROXY TCP4 localhost 192.0.2.9 1 8081\r\n",
        b"PROXY TCP4 ::1 ::2 1 8081\r\n",
        b"PROXY TCP6 192.0.2.1 192.0.2.9 1 8081\r\n",
        b"PROXY UDP4 192.0.2.1 192.0.2.9 1 8081\r\n",
        b"PROXY " + b"x" * MOST_LINE_BYTES,
        LONGEST_LINE.replace(b"\r\n", b"x\r"),
        binary(0x11, bytes(11)),
        binary(0x21, bytes(35)),
        binary(0x11, bytes(12), 0x22),
        binary(0x11, bytes(12), 0x11),
        binary(0x11, b"", length=MOST_BYTES - HEAD.sizeof() + 1),
    ],
)
def test_wrong_header_is_refused_as_soon_as_it_is_seen(data: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        read_proxy_header(data)


def test_first_bytes_of_http2_and_tls_are_no_header() -> None:
    assert [begins(data) for data in (b"PRI * HTTP/2.0\r\n\r\n", b"\x16\x03\x01", b"GET / HTTP/1.1")] == [False] * 3


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for start in (b"PROXY ", SIGNATURE_V2, b""):
        try:
            header = read_proxy_header(start + data)
        except ProxyHeaderError:
            continue
        assert header is None or 0 < header.size <= len(start + data)
