"""The header that a load balancer sends before the first byte of a client: PROXY protocol of HAProxy, versions 1 and 2.

Version 1 is a line of text, at most 107 bytes: `PROXY TCP4 192.0.2.1 192.0.2.9 56324 8081`, CR, LF. Version 2 is binary:

    offset  size  name
    0       12    signature
    12      1     version_command   0x21: for a client; 0x20: of the load balancer itself
    13      1     family            0x11 TCP over IPv4, 0x21 TCP over IPv6; others have no address that counts here
    14      2     length            of addresses and extensions that follow
    16      4|16  source
    ..      4|16  destination
    ..      2     source_port
    ..      2     destination_port
"""

from __future__ import annotations

import ipaddress

import attrs
import construct

from twisted_mq.protocol.layouts.derive import derive_struct
from twisted_mq.protocol.layouts.host import unpack_ip

SIGNATURE_V1, SIGNATURE_V2 = b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n"
MOST_LINE_BYTES = 107
MOST_BYTES = 4096
"""The limit of a header of version 2. Load balancers send some hundred bytes."""
FOR_ITSELF, FOR_CLIENT = 0x20, 0x21

HEAD = construct.Struct(
    "signature" / construct.Bytes(len(SIGNATURE_V2)),
    "version_command" / construct.Int8ub,
    "family" / construct.Int8ub,
    "length" / construct.Int16ub,
)


def _addresses(address_bytes: int) -> construct.Struct:
    return construct.Struct(
        "source" / construct.Bytes(address_bytes),
        "destination" / construct.Bytes(address_bytes),
        "source_port" / construct.Int16ub,
        "destination_port" / construct.Int16ub,
    )


ADDRESSES = {0x11: _addresses(4), 0x21: _addresses(16)}
"""By family."""
_HEAD = derive_struct(HEAD, "signature", "version_command", "family", "length")
_ADDRESSES = {
    family: derive_struct(layout, "source", "destination", "source_port", "destination_port")
    for family, layout in ADDRESSES.items()
}


class ProxyHeaderError(ValueError):
    """A header that begins as one and is wrong."""


@attrs.frozen
class ProxyHeader:
    """A header of `size` bytes. `source` is the client's host and port; None if the connection is the load balancer's own."""

    size: int
    source: tuple[str, int] | None


def begins(data: bytes) -> bool:
    """Return whether bytes are the begin of a header, or may be with those that follow."""
    return any(one.startswith(data[: len(one)]) for one in (SIGNATURE_V1, SIGNATURE_V2))


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """Return the header that bytes begin with; None if its end is missing. Raises ProxyHeaderError."""
    if data.startswith(SIGNATURE_V2[: len(data)]):
        return _read_binary(data) if len(data) >= _HEAD.size else None
    return _read_line(data)


def _read_line(data: bytes) -> ProxyHeader | None:
    line, end, _ = data[:MOST_LINE_BYTES].partition(b"\r\n")
    if not end:
        if len(data) >= MOST_LINE_BYTES:
            raise ProxyHeaderError(f"no end of the line within {MOST_LINE_BYTES} bytes")
        return None
    size = len(line) + len(end)
    words = line.decode("ascii", "replace").split(" ")
    if words[:2] == ["PROXY", "UNKNOWN"]:
        return ProxyHeader(size, None)
    if len(words) != 6 or words[1] not in ("TCP4", "TCP6"):
        raise ProxyHeaderError(f"{line!r} is not a line of version 1")
    host, port = words[2], words[4]
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
        raise ProxyHeaderError(f"port {port!r}")
    return ProxyHeader(size, (_checked(host, words[1] == "TCP6"), int(port)))


def _checked(host: str, is_v6: bool) -> str:
    """Return a numeric address in the form that sockets have."""
    try:
        packed = (ipaddress.IPv6Address if is_v6 else ipaddress.IPv4Address)(host).packed
    except ValueError as error:
        raise ProxyHeaderError(str(error)) from None
    return unpack_ip(packed)


def _read_binary(data: bytes) -> ProxyHeader | None:
    _, version_command, family, length = _HEAD.unpack_from(data)
    size = _HEAD.size + length
    if version_command not in (FOR_ITSELF, FOR_CLIENT):
        raise ProxyHeaderError(f"version and command {version_command:#x}")
    if size > MOST_BYTES:
        raise ProxyHeaderError(f"{size} bytes, at most {MOST_BYTES} are allowed")
    if len(data) < size:
        return None
    layout = _ADDRESSES.get(family)
    if version_command == FOR_ITSELF or layout is None:
        return ProxyHeader(size, None)
    if length < layout.size:
        raise ProxyHeaderError(f"{length} bytes of addresses, family {family:#x} has {layout.size}")
    source, _, port, _ = layout.unpack_from(data, _HEAD.size)
    return ProxyHeader(size, (unpack_ip(source), port))
