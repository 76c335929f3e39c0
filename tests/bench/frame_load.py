"""Puts prepared frames on a broker's connections and counts the answers: the load of `bench_curves`."""

from __future__ import annotations

import itertools
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator

import attrs

_LENGTH = struct.Struct(">I")
_HEADER = 8
"""Bytes before the header: the frame's length, and the header's with its encoding."""
SUCCESS = b'{"code":0,'
"""The begin of an answer's header in JSON."""
LOOPBACK = "127.0.0.1"


class LoadFailed(Exception):
    """The broker refused a request, or closed a connection."""


@attrs.define(eq=False)
class FrameLoad:
    """Frames in flight over some connections, which take turns. `frame` makes that of a number."""

    port: int
    frame: Callable[[int], bytes]
    connections: int = 1
    in_flight: int = 64
    kinds: int = 1
    """So many frames in a row go to different queues."""
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count, init=False)
    _sockets: dict[int, socket.socket] = attrs.field(factory=dict, init=False)
    _received: dict[int, bytes] = attrs.field(factory=dict, init=False)
    _turn: Iterator[int] = attrs.field(factory=lambda: iter(()), init=False)
    _epoll: select.epoll = attrs.field(factory=select.epoll, init=False)

    def __enter__(self) -> FrameLoad:
        for _ in range(self.connections):
            one = socket.create_connection((LOOPBACK, self.port), 30)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets[one.fileno()] = one
            self._received[one.fileno()] = b""
            self._epoll.register(one, select.EPOLLIN)
        self._turn = itertools.cycle(self._sockets)
        return self

    def __exit__(self, *error: object) -> None:
        for one in self._sockets.values():
            one.close()
        self._epoll.close()

    def answered(self, seconds: float, least: int = 0) -> int:
        """Keep frames in flight for that long, and until `least` are answered. Return how many were. Raises LoadFailed."""
        until, count = time.monotonic() + seconds, 0
        waiting = self._send(self.in_flight)
        while waiting:
            came = self._answers()
            count += came
            waiting -= came
            if time.monotonic() < until or count + waiting < least:
                waiting += self._send(came)
        return count

    def _send(self, count: int) -> int:
        shares = Counter(itertools.islice(self._turn, count))
        for number, share in shares.items():
            self._sockets[number].sendall(b"".join(map(self.frame, itertools.islice(self._numbers, share))))
        return count

    def _answers(self) -> int:
        """Wait for answers and return how many came."""
        return sum(self._read(number) for number, _ in self._epoll.poll(30) or self._silent())

    def _silent(self) -> list[tuple[int, int]]:
        raise LoadFailed("no answer within 30 s")

    def _read(self, number: int) -> int:
        data = self._sockets[number].recv(1 << 20)
        if not data:
            raise LoadFailed("the broker closed a connection")
        data, place, count = self._received[number] + data, 0, 0
        while len(data) >= place + _HEADER:
            end = place + _LENGTH.size + _LENGTH.unpack_from(data, place)[0]
            if len(data) < end:
                break
            if not data.startswith(SUCCESS, place + _HEADER):
                raise LoadFailed(data[place:end][:500].decode(errors="replace"))
            place, count = end, count + 1
        self._received[number] = data[place:]
        return count
