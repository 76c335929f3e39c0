"""A transport that hands on data though it was paused, as one with TLS does with what it has decrypted."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

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
