"""Addresses as records and message ids hold them: the address's 4 or 16 bytes, then the port in 4.

Example: 127.0.0.2:20911 is 7f000002 000051af.
"""

from __future__ import annotations

import ipaddress

IPV4_HOST_BYTES = 8
IPV6_HOST_BYTES = 20


def pack_ip(host: str) -> bytes:
    """4 or 16 bytes of a numeric address; an IPv4 address inside IPv6 gives 4, as in Java. ValueError for a name."""
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.packed


def unpack_ip(packed: bytes | memoryview) -> str:
    """The text of 4 or 16 address bytes; ValueError for any other length."""
    if len(packed) == 4:
        return ".".join(map(str, packed))
    if len(packed) == 16:
        return str(ipaddress.IPv6Address(bytes(packed)))
    raise ValueError(f"an address of {len(packed)} bytes, 4 or 16 are needed")


def pack_host(host: str, port: int) -> bytes:
    """8 bytes for IPv4, 20 for IPv6."""
    return pack_ip(host) + port.to_bytes(4, "big")


def unpack_host(packed: bytes | memoryview) -> tuple[str, int]:
    """(address, port) of 8 or 20 bytes; ValueError for any other length."""
    return unpack_ip(packed[:-4]), int.from_bytes(packed[-4:], "big")


def host_text(packed: bytes | memoryview) -> str:
    """`127.0.0.1:10911` or `[::1]:10911`; ValueError for a length other than 8 or 20."""
    host, port = unpack_host(packed)
    return f"{host}:{port}" if len(packed) == IPV4_HOST_BYTES else f"[{host}]:{port}"


def parse_host_text(text: str) -> tuple[str, int]:
    """(address, port) of what `host_text` writes; ValueError where there is no port or it is no number."""
    host, separator, port = text.rpartition(":")
    if not separator:
        raise ValueError(f"{text!r} has no port")
    return host.removeprefix("[").removesuffix("]"), int(port)
