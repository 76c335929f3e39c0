"""A connection, with the test at the other end of a pair of sockets."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.signature import Credentials, is_signed
from twisted_mq.spark.live.connection import Dialling, PeerConnection, split_address
from twisted_mq.spark.live.errors import PeerSilent


class Pair:
    """A connection, and its peer's socket."""

    def __init__(self, credentials: Credentials | None = None) -> None:
        ours, self.peer = socket.socketpair()
        ours.settimeout(5)
        self.connection = PeerConnection("b:1", ours, credentials)
        self._decoder = FrameDecoder()

    def received(self, count: int) -> list[RemotingCommand]:
        commands: list[RemotingCommand] = []
        while len(commands) < count:
            commands += self._decoder.receive_data(self.peer.recv(65536))
        return commands

    def answer(self, *opaques: int) -> None:
        self.peer.sendall(b"".join(encode_frame(RemotingCommand(0, one, 1, body=b"%d" % one)) for one in opaques))


@pytest.fixture
def pair() -> Pair:
    return Pair()


def request(topic: str = "T") -> RemotingCommand:
    return RemotingCommand.request(RequestCode.GET_MAX_OFFSET, {"topic": topic})


def test_answers_are_told_apart_by_their_numbers(pair: Pair) -> None:
    first, second = pair.connection.send(request()), pair.connection.send(request())
    assert [command.opaque for command in pair.received(2)] == [first, second]
    pair.answer(second, first)
    assert [pair.connection.receive().opaque for _ in range(2)] == [second, first]


def test_what_may_leave_later_leaves_before_an_answer_is_waited_for(pair: Pair) -> None:
    later = pair.connection.send_later(request())
    pair.peer.setblocking(False)
    with pytest.raises(BlockingIOError):
        pair.peer.recv(1)
    pair.peer.setblocking(True)
    pair.answer(later)
    assert pair.connection.receive().opaque == later
    assert len(pair.received(1)) == 1


def test_all_answers_come_in_the_order_of_the_requests(pair: Pair) -> None:
    pair.answer(3, 1, 2)
    answers = pair.connection.call_all(request() for _ in range(3))
    assert [answer.body for answer in answers] == [b"1", b"2", b"3"]


def test_requests_of_the_peer_are_passed_over(pair: Pair) -> None:
    pair.peer.sendall(encode_frame(RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)))
    pair.answer(1)
    assert pair.connection.call(request()).body == b"1"


def test_requests_are_signed() -> None:
    pair = Pair(Credentials("ada", "secret"))
    pair.connection.send(request())
    (command,) = pair.received(1)
    assert command.ext_fields["AccessKey"] == "ada"
    assert is_signed(command, "secret")


@pytest.mark.parametrize(
    ("data", "reason"), [(b"", "b:1: closed the connection"), (b"\0\0\0\1\0\0\0\0\0", "b:1: a frame length of 1")]
)
def test_a_peer_that_ends_or_says_nonsense_is_silent(pair: Pair, data: bytes, reason: str) -> None:
    pair.peer.sendall(data)
    pair.peer.shutdown(socket.SHUT_WR)
    with pytest.raises(PeerSilent, match=reason):
        pair.connection.receive()
    assert pair.connection.closed
    with pytest.raises(PeerSilent):
        pair.connection.send(request())


@pytest.mark.parametrize(
    ("address", "parts"), [("h:1", ("h", 1)), ("[::1]:9876", ("::1", 9876)), ("10.0.0.1:80", ("10.0.0.1", 80))]
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[str, Authority]]:
    """Answers one request over each connection; its address and who vouches for it."""
    authority = Authority(tmp_path)
    files = authority.issue("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = server.accept()
                    with contextlib.suppress(ssl.SSLError), context.wrap_socket(plain, server_side=True) as one:
                        (command,) = FrameDecoder().receive_data(one.recv(65536))
                        one.sendall(encode_frame(RemotingCommand(0, command.opaque, 1, body=b"secret")))

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", authority
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_connections_are_encrypted(tls_server: tuple[str, Authority], tmp_path: Path) -> None:
    address, authority = tls_server
    for ca_file in (authority.path, None):
        connection = Dialling(5, tls=True, tls_ca_file=ca_file).connect(address)
        assert connection.call(request()).body == b"secret"
        connection.close()
    other = Authority(tmp_path / "other")
    with pytest.raises(PeerSilent, match=r"no TLS: .*certificate verify failed"):
        Dialling(5, tls=True, tls_ca_file=other.path).connect(address)
