from __future__ import annotations

import construct
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.host import (
    HOST_V4,
    HOST_V6,
    host_text,
    pack_host,
    parse_host_text,
    unpack_host,
    unpack_ip,
)


@pytest.mark.parametrize(
    ("host", "port", "packed", "text"),
    [
        ("127.0.0.2", 20911, "7f000002000051af", "127.0.0.2:20911"),
        ("::1", 10911, "00000000000000000000000000000001" + "00002a9f", "[::1]:10911"),
        ("2001:db8::a", 1, "20010db800000000000000000000000a" + "00000001", "[2001:db8::a]:1"),
    ],
)
def test_hosts_pack_and_read_back(host: str, port: int, packed: str, text: str) -> None:
    data = bytes.fromhex(packed)
    assert pack_host(host, port) == data
    assert unpack_host(data) == (host, port)
    assert host_text(data) == text
    assert parse_host_text(text) == (host, port)


@given(st.sampled_from([HOST_V4, HOST_V6]), st.data())
def test_any_host_is_as_its_layout_builds_it(layout: construct.Struct, data: st.DataObject) -> None:
    raw = data.draw(st.binary(min_size=layout.sizeof(), max_size=layout.sizeof()))
    parsed = layout.parse(raw)
    assert unpack_host(raw) == (unpack_ip(parsed.address), parsed.port)
    assert pack_host(*unpack_host(raw)) in (raw, raw[12:])  # an IPv4 address inside IPv6 packs as IPv4


@pytest.mark.parametrize("size", [0, 3, 5, 15, 17])
def test_no_address_has_another_size(size: int) -> None:
    with pytest.raises(ValueError, match=f"an address of {size} bytes, 4 or 16 are needed"):
        unpack_ip(bytes(size))


def test_an_ipv4_address_inside_ipv6_packs_as_ipv4() -> None:
    assert pack_host("::ffff:10.0.0.1", 1) == bytes.fromhex("0a00000100000001")


@pytest.mark.parametrize("size", [0, 7, 9, 16, 21])
def test_other_lengths_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="4 or 16 are needed"):
        unpack_host(bytes(size))


def test_a_name_is_no_address() -> None:
    with pytest.raises(ValueError, match="broker-a"):
        pack_host("broker-a", 10911)


@pytest.mark.parametrize(
    "text", ["10.0.0.1", ":1", "h:", "h:x", "h:-1", "h:65536", "h:\u00b2", "h:\u0663", "h:" + "9" * 5000]
)
def test_what_is_no_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address of the form host:port"):
        parse_host_text(text)


@given(st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20)))
def test_every_packed_host_has_a_text(packed: bytes) -> None:
    """Ports have four bytes in records; one over 65535 is no part of an address."""
    host, port = unpack_host(packed)
    text = host_text(packed)
    if port < 65536:
        assert parse_host_text(text) == (host, port)
    else:
        assert text.endswith(f":{port}")


@pytest.mark.parametrize("port", [0, 65535])
def test_ports_have_two_bytes(port: int) -> None:
    assert parse_host_text(f"broker-a:{port}") == ("broker-a", port)
