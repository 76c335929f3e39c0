"""Addresses as records and message ids hold them, 8 bytes for IPv4 and 20 for IPv6:

    offset size name
    0      4|16 address
    ..     4    port

Example: 127.0.0.2:20911 is 7f000002 000051af.
"""

from __future__ import annotations

import ipaddress

import construct

from twisted_mq.protocol.layouts.derive import derive_struct


def _host(address_bytes: int) -> construct.Struct:
    return construct.Struct("address" / construct.Bytes(address_bytes), "port" / construct.Int32ub)


HOST_V4 = _host(4)
HOST_V6 = _host(16)
_HOSTS = {layout.sizeof(): derive_struct(layout, "address", "port") for layout in (HOST_V4, HOST_V6)}
"""By their sizes in bytes."""
IPV4_HOST_BYTES, IPV6_HOST_BYTES = _HOSTS
_PORT_BYTES = IPV4_HOST_BYTES - 4


def pack_ip(host: str) -> bytes:
    """Return 4 or 16 bytes of a numeric address; an IPv4 address inside IPv6 gives 4, as in Java. Raises ValueError for a
    name.
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.packed


def unpack_ip(packed: bytes | memoryview) -> str:
    """Return the text of 4 or 16 address bytes. Raises ValueError for any other length."""
    if len(packed) == 4:
        return ".".join(map(str, packed))
    if len(packed) == 16:
        return str(ipaddress.IPv6Address(bytes(packed)))
    raise ValueError(f"an address of {len(packed)} bytes, 4 or 16 are needed")


def pack_host(host: str, port: int) -> bytes:
    """Return 8 bytes for IPv4, 20 for IPv6."""
    address = pack_ip(host)
    return _HOSTS[len(address) + _PORT_BYTES].pack(address, port)


def unpack_host(packed: bytes | memoryview) -> tuple[str, int]:
    """Return (address, port) of 8 or 20 bytes. Raises ValueError for any other length."""
    layout = _HOSTS.get(len(packed))
    if layout is None:
        raise ValueError(f"a host of {len(packed)} bytes, a port and an address of 4 or 16 are needed")
    address, port = layout.unpack(packed)
    return unpack_ip(address), port


def host_text(packed: bytes | memoryview) -> str:
    """Return `127.0.0.1:10911` or `[::1]:10911`. Raises ValueError for a length other than 8 or 20."""
    host, port = unpack_host(packed)
    return f"{host}:{port}" if len(packed) == IPV4_HOST_BYTES else f"[{host}]:{port}"


def parse_host_text(text: str) -> tuple[str, int]:
    """Return host, address or name, and port of `host:port`; IPv6 hosts may be in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
        raise ValueError(f"{text!r} is not an address of the form host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)
