"""Frames in captured packets, pcap or pcapng: TCP streams reassembled from dpkt's packets.

Packets out of order wait, repeated ones are dropped. After missing packets a direction continues at the next packet that begins
with a frame; likewise if the capture started in the middle of a connection. Other traffic has no frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs

from twisted_mq.extras import require
from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.wire.cutting import FrameCutter
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.spark.errors import StoreReadError

if TYPE_CHECKING:
    import dpkt

_SEQUENCES = 1 << 32
MOST_WAITING = 4 << 20
"""Maximum number of bytes that wait for a missing packet; then it counts as lost."""
Address = tuple[str, int]
Found = tuple[int, bool, str, bytes]
"""Time in us, True from the client, connection, frame."""


@attrs.define
class Stream:
    """A direction of a connection: bytes in order of their sequence numbers."""

    expected: int | None = None
    cutter: FrameCutter = attrs.field(factory=FrameCutter)
    _waiting: dict[int, bytes] = attrs.field(factory=dict)

    def frames(self, sequence: int, data: bytes) -> Iterator[bytes]:
        """Return the frames that are complete now."""
        if self.expected is None:
            self.expected = sequence
        if len(data) > len(self._waiting.get(sequence, b"")):
            self._waiting[sequence] = data
        if sum(map(len, self._waiting.values())) > MOST_WAITING:
            self.expected = min(self._waiting, key=self._ahead)
            self.cutter = FrameCutter()
        for ready in self._in_order():
            yield from self.cutter.receive_data(ready)
            if self.cutter.failed:
                self.cutter = FrameCutter()

    def _in_order(self) -> Iterator[bytes]:
        for sequence in sorted(self._waiting, key=self._ahead):
            ahead = self._ahead(sequence)
            if ahead > 0:
                return
            ready = self._waiting.pop(sequence)[-ahead:] if ahead else self._waiting.pop(sequence)
            assert self.expected is not None
            self.expected = (self.expected + len(ready)) % _SEQUENCES
            if ready:
                yield ready

    def _ahead(self, sequence: int) -> int:
        """Return the distance of a sequence number from the expected byte; below 0: before it. Numbers wrap around."""
        assert self.expected is not None
        return (sequence - self.expected + _SEQUENCES // 2) % _SEQUENCES - _SEQUENCES // 2


def packet_frames(file: BinaryIO, path: str) -> Iterator[Found]:
    """Yield frames in the order in which they were complete. Raises StoreReadError, MissingExtra."""
    require("packets of recorded traffic", "pcap")
    import dpkt

    try:
        reader = dpkt.pcap.UniversalReader(file)
        unpack = _link_layers()[reader.datalink()]
    except (ValueError, dpkt.dpkt.Error) as error:
        raise StoreReadError(f"{path}: is neither pcap nor pcapng: {error}") from error
    except KeyError as error:
        raise StoreReadError(f"{path}: packets of kind {error} cannot be read") from error
    streams: dict[tuple[Address, Address], Stream] = {}
    clients: dict[frozenset[Address], Address] = {}
    for seconds, data in reader:
        segment = _tcp_in(unpack, data)
        if segment is not None:
            yield from _frames(int(seconds * 1_000_000), *segment, streams, clients)


def _link_layers() -> dict[int, Callable[[bytes], Any]]:
    """Return the kind of captured packets -> their parser."""
    import dpkt

    def raw(data: bytes) -> Any:
        return dpkt.ip6.IP6(data) if data[:1] >= b"\x60" else dpkt.ip.IP(data)

    return {
        dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
        dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
        dpkt.pcap.DLT_RAW: raw,
        101: raw,
        dpkt.pcap.DLT_LOOP: dpkt.loopback.Loopback,
        dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
        dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
    }


def _tcp_in(unpack: Callable[[bytes], Any], data: bytes) -> tuple[Address, Address, dpkt.tcp.TCP] | None:
    """Return sender, receiver and the TCP segment in a packet; None for a packet without one."""
    import dpkt

    try:
        packet = unpack(data)
        inner = packet if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) else packet.data
        if not isinstance(inner, dpkt.ip.IP | dpkt.ip6.IP6) or not isinstance(inner.data, dpkt.tcp.TCP):
            return None
    except (dpkt.dpkt.Error, IndexError):
        return None  # a truncated packet
    tcp, text = inner.data, dpkt.utils.inet_to_str
    return (text(inner.src), tcp.sport), (text(inner.dst), tcp.dport), tcp


def _frames(
    time_us: int,
    sender: Address,
    receiver: Address,
    tcp: dpkt.tcp.TCP,
    streams: dict[tuple[Address, Address], Stream],
    clients: dict[frozenset[Address], Address],
) -> Iterator[Found]:
    import dpkt

    both = frozenset((sender, receiver))
    if tcp.flags & dpkt.tcp.TH_SYN:
        clients[both] = receiver if tcp.flags & dpkt.tcp.TH_ACK else sender
        streams[sender, receiver] = Stream((tcp.seq + 1) % _SEQUENCES)
        return
    client = clients.setdefault(both, max(sender, receiver, key=lambda address: address[1]))
    server = receiver if client == sender else sender
    stream = streams.setdefault((sender, receiver), Stream())
    if tcp.data:
        for frame in stream.frames(tcp.seq, bytes(tcp.data)):
            if _is_command(frame):
                yield time_us, sender == client, f"{_text(client)}>{_text(server)}", frame


def _is_command(frame: bytes) -> bool:
    try:
        FrameDecoder().receive_data(frame)
    except FrameError:
        return False
    return True


def _text(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
