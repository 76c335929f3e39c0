"""A blocking connection to a broker or name server: a socket with the frames of twisted_mq.protocol.wire.

Several requests can be in flight; answers come in the order in which the peer finishes them. Not thread-safe.
"""

from __future__ import annotations

import collections
import select
import socket
import ssl
from collections.abc import Iterable, Iterator

import attrs

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.layouts.host import parse_host_text
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.signature import Credentials, sign
from twisted_mq.spark.live.errors import PeerSilent

RECEIVE_BYTES = 1 << 18
BUSY_CODES = frozenset(
    {ResponseCode.SYSTEM_BUSY, ResponseCode.FLOW_CONTROL, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.GO_AWAY}
)
"""Codes of a peer that is overloaded, starting or stopping: another peer, or the same one later, may serve the request."""
MAX_IN_FLIGHT = 64
"""Maximum number of small requests in flight before the first answer is awaited."""
_MAX_OPAQUE = 1 << 31


@attrs.frozen
class Dialling:
    """Settings of connections. `timeout_seconds` limits connecting, and any silence while an answer is awaited."""

    timeout_seconds: float = 10.0
    tls: bool = False
    tls_ca_file: str | None = None
    """File of trusted certificates; None accepts any, like RocketMQ's clients."""
    credentials: Credentials | None = None

    def connect(self, address: str) -> PeerConnection:
        """Open a connection. Raises PeerSilent."""
        host, port = split_address(address)
        try:
            plain = socket.create_connection((host, port), self.timeout_seconds)
        except OSError as error:
            raise PeerSilent(address, f"no connection: {error}") from error
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return PeerConnection(address, self._secured(plain, host), self.credentials)
        except OSError as error:
            plain.close()
            raise PeerSilent(address, f"no TLS: {error}") from error

    def _secured(self, plain: socket.socket, host: str) -> socket.socket:
        if not self.tls:
            return plain
        context = ssl.create_default_context(cafile=self.tls_ca_file)
        if self.tls_ca_file is None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(plain, server_hostname=host)


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port"; IPv6 hosts may be in brackets. Raises PeerSilent."""
    try:
        return parse_host_text(address)
    except ValueError:
        raise PeerSilent(address, "is not an address of the form host:port") from None


class PeerConnection:
    """A connection to one peer. It is closed after any PeerSilent."""

    def __init__(self, address: str, made: socket.socket, credentials: Credentials | None = None) -> None:
        self.address = address
        self._socket = made
        self._credentials = credentials
        self._decoder = FrameDecoder()
        self._answers: collections.deque[RemotingCommand] = collections.deque()
        self._leaving: list[bytes] = []
        self._opaque = 0
        self.closed = False

    def send(self, request: RemotingCommand) -> int:
        """Send a request and return the number of its answer."""
        opaque = self.send_later(request)
        self._flush()
        return opaque

    def send_later(self, request: RemotingCommand) -> int:
        """Queue a request and return the number of its answer; it is sent with others before an answer is awaited."""
        self._opaque = request.opaque = (self._opaque + 1) % _MAX_OPAQUE
        if self._credentials is not None:
            sign(request, self._credentials)
        self._leaving.append(encode_frame(request))
        return self._opaque

    def _flush(self) -> None:
        try:
            self._socket.sendall(b"".join(self._leaving))
        except OSError as error:
            raise self._failed(f"cannot be sent to: {error}") from error
        self._leaving.clear()

    def receive(self) -> RemotingCommand:
        """Return the next answer, to any request."""
        if self._leaving and not self._answers:
            self._flush()
        while not self._answers:
            self._answers.extend(command for command in self._decoded() if command.is_response)
        return self._answers.popleft()

    def call(self, request: RemotingCommand) -> RemotingCommand:
        """Send a request and return its answer; no other request may be in flight."""
        opaque = self.send(request)
        answer = self.receive()
        while answer.opaque != opaque:
            answer = self.receive()
        return answer

    def call_all(self, requests: Iterable[RemotingCommand]) -> list[RemotingCommand]:
        """Send requests and return their answers, in the order of the requests."""
        waiting: Iterator[RemotingCommand] = iter(requests)
        order: list[int] = []
        answers: dict[int, RemotingCommand] = {}
        for request in waiting:
            order.append(self.send_later(request))
            if len(order) - len(answers) >= MAX_IN_FLIGHT:
                self._take(answers)
        while len(answers) < len(order):
            self._take(answers)
        return [answers[opaque] for opaque in order]

    def _take(self, answers: dict[int, RemotingCommand]) -> None:
        answer = self.receive()
        answers[answer.opaque] = answer

    def _decoded(self) -> list[RemotingCommand]:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
            if not data:
                raise self._failed("closed the connection")
            return self._decoder.receive_data(data)
        except TimeoutError as error:
            raise self._failed(f"no answer within {self._socket.gettimeout():g} s") from error
        except (OSError, FrameError) as error:
            raise self._failed(str(error)) from error

    def _failed(self, reason: str) -> PeerSilent:
        self.close()
        return PeerSilent(self.address, reason)

    def close_if_ended(self) -> None:
        """Close the connection if the peer has closed it; no request may be in flight."""
        if not self.closed and select.select([self._socket], [], [], 0)[0]:
            self.close()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self.closed = True
        self._socket.close()
