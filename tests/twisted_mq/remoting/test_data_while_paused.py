"""A transport that hands on data though it was paused, as one with TLS does with what it has decrypted."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from tests.support.remoting import connect
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic


def test_commands_that_come_while_others_wait_are_processed_after_them() -> None:
    clock, processed = Clock(), []

    def slow(channel: SocketChannel, command: RemotingCommand) -> None:
        processed.append(command.opaque)
        clock.advance(0.03)

    channel = SocketChannel(Traffic({1: slow}, clock))
    channel.makeConnection(StringTransport())
    frames = [encode_frame(RemotingCommand(1, opaque=number)) for number in range(1, 7)]
    channel.dataReceived(b"".join(frames[:3]))
    assert processed == [1]
    channel.dataReceived(b"".join(frames[3:]))
    assert processed == [1]
    for _ in range(6):
        clock.advance(0)
    assert processed == [1, 2, 3, 4, 5, 6]


def test_bytes_that_wait_to_be_decoded_count_as_unfinished_frames() -> None:
    clock = Clock()

    def slow(channel: SocketChannel, command: RemotingCommand) -> None:
        clock.advance(0.03)

    traffic = Traffic({1: slow}, clock)
    channel = SocketChannel(traffic)
    channel.makeConnection(StringTransport())
    frame = encode_frame(RemotingCommand(1, opaque=1))
    channel.dataReceived(frame * 3)
    channel.dataReceived(frame * 2 + frame[:10])
    channel.dataReceived(frame[10:])
    assert traffic.budget.incomplete_bytes == 3 * len(frame)
    for _ in range(6):
        clock.advance(0)
    assert traffic.budget.incomplete_bytes == 0


def test_a_peer_whose_bytes_wait_is_cut_off_past_the_limit() -> None:
    clock = Clock()

    def slow(channel: SocketChannel, command: RemotingCommand) -> None:
        clock.advance(0.03)

    traffic = Traffic({1: slow}, clock)
    frame = encode_frame(RemotingCommand(1, opaque=1))
    traffic.budget.options.max_incomplete_bytes = 2 * len(frame)
    channel = SocketChannel(traffic)
    transport = connect(channel)
    channel.dataReceived(frame * 3)
    channel.dataReceived(frame * 3)
    assert transport.aborted
    for _ in range(6):
        clock.advance(0)
