"""Connections with long work left of a read go on in rounds of bounded length."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.remoting import connect, frames, sent
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.rotation import ROUND_SECONDS
from twisted_mq.remoting.socket_channel import SLICE_SECONDS, SocketChannel, Traffic

SLOW, QUICK = 10, 11
COMMAND_SECONDS = 0.008
MANY = 50


class RotationCase(SynchronousTestCase):
    """Many connections, each with twenty commands of one read that take long."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.traffic = Traffic({SLOW: self._slow, QUICK: lambda _, command: command.answer()}, self.clock)
        self.channels = [SocketChannel(self.traffic) for _ in range(MANY)]
        self.transports = [connect(channel) for channel in self.channels]
        for channel in self.channels:
            channel.dataReceived(frames(*(RemotingCommand(SLOW, opaque=number) for number in range(20))))

    def _slow(self, _: SocketChannel, command: RemotingCommand) -> RemotingCommand:
        self.clock.rightNow += COMMAND_SECONDS  # as time goes by while a command is processed: no timer runs meanwhile
        return command.answer()

    def test_a_quick_command_waits_for_one_round_whatever_the_others_want(self) -> None:
        honest = SocketChannel(self.traffic)
        transport = connect(honest)
        late: list[float] = []

        def comes(due: float) -> None:
            honest.dataReceived(frames(RemotingCommand(QUICK)))
            self.assertEqual(len(sent(transport)), 1)
            late.append(self.clock.seconds() - due)

        for number in range(20):
            due = self.clock.seconds() + number * 0.1
            self.clock.callLater(number * 0.1, comes, due)
        self.clock.advance(0)
        self.assertEqual(len(late), 20)
        self.assertLess(max(late), ROUND_SECONDS + SLICE_SECONDS + 2 * COMMAND_SECONDS)

    def test_everybody_has_a_slice_before_anybody_has_the_next_and_all_are_answered_in_order(self) -> None:
        self.clock.advance(0)
        answered = [[one.opaque for one in sent(transport)] for transport in self.transports]
        self.assertEqual(answered, [list(range(20))] * MANY)

    def test_a_connection_that_is_lost_leaves_the_rotation(self) -> None:
        for transport in self.transports:
            transport.abortConnection()
        self.assertEqual(self.clock.getDelayedCalls(), [])
