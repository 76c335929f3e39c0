"""The paths over TLS: sends as a client with many senders makes them, each request a record of its own.

What is counted is OpenSSL's work too, with what valgrind's processor has for AES; the certificate is made for the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any

from OpenSSL import SSL

from tests.bench.bench_broker import Sink, sends, traffic_of
from tests.bench.count_paths import BATCH, CountedPath, Prepared, answered, counted_broker
from twisted_mq.config.tls_options import TlsMode, TlsOptions
from twisted_mq.encryption.contexts import put_below
from twisted_mq.encryption.servers import server_encryption
from twisted_mq.remoting.socket_channel import SocketChannel


class Encrypted(Sink):
    """A transport that keeps all that was written: a record can't be read without those before it."""

    producer = None
    streamingProducer = False

    def __init__(self) -> None:
        super().__init__()
        self.kept: deque[bytes] = deque()
        self.write = self.kept.append  # type: ignore[method-assign, assignment]


class Peer:
    """The client's end of one connection."""

    def __init__(self, transport: Encrypted) -> None:
        self._kept = transport.kept
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        self._connection = SSL.Connection(context, None)
        self._connection.set_connect_state()

    def shake_hands(self, receive: Any) -> None:
        """Until both have agreed on a key; `receive` is the server's."""
        done = False
        while not done:
            try:
                self._connection.do_handshake()
                done = True
            except SSL.WantReadError:
                pass
            receive(self._connection.bio_read(1 << 16))
            while self._kept:
                self._connection.bio_write(self._kept.popleft())

    def take(self) -> bytes:
        """Return the end of what the server wrote, decrypted."""
        last = b""
        while self._kept:
            self._connection.bio_write(self._kept.popleft())
            try:
                last = self._connection.recv(1 << 16)
            except SSL.WantReadError:
                continue
        return last

    def record(self, frame: bytes) -> bytes:
        """A frame as it comes over the network."""
        self._connection.send(frame)
        return self._connection.bio_read(1 << 16)


def encrypted(folder: str, reads: Iterable[list[bytes]]) -> tuple[Prepared, Peer]:
    """A broker's channel with TLS below it for these reads of some frames each."""
    broker: Any = counted_broker(folder)
    options = TlsOptions(tls_server_mode=TlsMode.ENFORCING, tls_test_mode_enable=True)
    encryption: Any = server_encryption(options, broker.clock.seconds, broker.clock)
    channel, transport = (
        SocketChannel(traffic_of(broker)),
        Encrypted(),
    )
    channel.makeConnection(transport)  # type: ignore[no-untyped-call]
    tls, peer = put_below(channel, encryption, broker.clock), Peer(transport)
    peer.shake_hands(tls.dataReceived)
    pieces = [b"".join(map(peer.record, frames)) for frames in reads]
    return Prepared(tls.dataReceived, pieces, transport.kept, broker.store.close), peer


class Decrypting(Prepared):
    """Decrypts the answers to the last piece."""

    peer: Peer

    def run(self, count: int) -> Any:
        super().run(count)
        return self.peer.take()


def prepare_encrypted(folder: str, count: int, frames: int) -> Prepared:
    """So many requests a read."""
    made = list(sends(count * frames, 0))
    prepared, peer = encrypted(folder, (made[start : start + frames] for start in range(0, len(made), frames)))
    decrypting = Decrypting(prepared.call, prepared.pieces, prepared.answers, prepared.close)
    decrypting.peer = peer
    return decrypting


ENCRYPTED_PATHS = (
    CountedPath("send over TLS, JSON", partial(prepare_encrypted, frames=1), answered, 200, 1000),
    CountedPath(
        "send over TLS, JSON, 32 a read",
        partial(prepare_encrypted, frames=BATCH),
        partial(answered, frames=BATCH),
        8,
        40,
        requests=BATCH,
    ),
)
"""In the table's order."""
