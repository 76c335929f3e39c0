"""Requests of a client that leave together: while answers are read, in one turn, alone, and at the connection's end."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.internet.tcp import Connection
from twisted.trial.unittest import SynchronousTestCase

from tests.support.remoting import connect, frames
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.remoting.calling_channel import REQUESTS_TOGETHER, CallingChannel
from twisted_mq.remoting.outbox import Outbox
from twisted_mq.remoting.socket_channel import Traffic


class Plain(Connection):
    """A connection over TCP whose socket takes everything, in `writes`."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.connected = True
        self.disconnected = self.disconnecting = False
        self._tempDataBuffer: list[bytes] = []
        self.dataBuffer = b""

    def writeSomeData(self, data: bytes) -> int:
        self.writes.append(data)
        return len(data)

    def getPeer(self) -> object:
        return None

    def setTcpNoDelay(self, enabled: bool) -> None: ...

    def loseConnection(self) -> None: ...

    def abortConnection(self) -> None:
        self.disconnected = True


class Together(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.outbox = Outbox(self.clock)
        self.traffic = Traffic({}, self.clock, pause_reading=False)
        self.channel, self.transport = self.connected()

    def connected(self) -> tuple[CallingChannel, Plain]:
        channel, transport = CallingChannel(self.traffic, self.outbox), Plain()
        channel.makeConnection(transport)  # type: ignore[no-untyped-call]
        return channel, transport

    def ask(self, *bodies: bytes) -> None:
        for body in bodies:
            self.channel.send_request(RemotingCommand(9, body=body), 3).addErrback(lambda _: None)

    def left(self, transport: Plain | None = None) -> list[list[bytes]]:
        """The bodies of each write."""
        writes = (transport or self.transport).writes
        return [[command.body for command in FrameDecoder().receive_data(data)] for data in writes]

    def test_a_request_alone_leaves_at_once_those_behind_it_in_the_next_turn(self) -> None:
        self.ask(b"1", b"2", b"3")
        self.assertEqual(self.left(), [[b"1"]])
        self.clock.advance(0)
        self.assertEqual(self.left(), [[b"1"], [b"2", b"3"]])

    def test_requests_made_while_answers_are_read_are_one_write_to_each_peer(self) -> None:
        other, transport = self.connected()
        for body in (b"1", b"2"):
            waiting = self.channel.send_request(RemotingCommand(9, body=body), 3)
            waiting.addCallback(lambda _: (self.ask(b"next"), other.send_one_way(RemotingCommand(9, body=b"o"))))
        self.clock.advance(0)
        del self.transport.writes[:]
        self.channel.dataReceived(frames(*(RemotingCommand(0, opaque, flag=1) for opaque in (1, 2))))
        self.assertEqual(self.left(), [[b"next", b"next"]])
        self.assertEqual(self.left(transport), [[b"o", b"o"]])
        self.assertEqual([call.func.__name__ for call in self.clock.getDelayedCalls()], ["_timed_out"])

    def test_a_peer_of_which_nothing_came_since_is_given_up(self) -> None:
        self.clock.advance(1)
        self.ask(b"1")
        self.clock.advance(3)
        self.assertEqual((self.transport.disconnected, self.channel.connected_now), (True, False))

    def test_a_peer_that_is_slow_with_one_answer_or_within_a_frame_is_not(self) -> None:
        slow, slow_transport = self.connected()
        self.ask(b"1", b"2")
        slow.send_request(RemotingCommand(9), 3).addErrback(lambda _: None)
        self.clock.advance(2)
        self.channel.dataReceived(frames(RemotingCommand(0, 2, flag=1)))
        slow.dataReceived(frames(RemotingCommand(0, 1, flag=1))[:9])
        self.clock.advance(1)
        self.assertEqual((self.transport.disconnected, slow_transport.disconnected), (False, False))

    def test_many_requests_do_not_wait_for_the_last(self) -> None:
        self.ask(*[b"x"] * (REQUESTS_TOGETHER + 2))
        self.assertEqual([len(one) for one in self.left()], [1, REQUESTS_TOGETHER])
        self.clock.advance(0)
        self.assertEqual([len(one) for one in self.left()], [1, REQUESTS_TOGETHER, 1])

    def test_what_is_held_leaves_before_the_connection_is_closed(self) -> None:
        self.ask(b"1", b"2")
        self.channel.close()
        self.assertEqual(self.left(), [[b"1"], [b"2"]])

    def test_nothing_leaves_on_a_connection_that_is_lost(self) -> None:
        self.ask(b"1", b"2")
        self.channel.abort()
        self.clock.advance(0)
        self.assertEqual(self.left(), [[b"1"]])

    def test_what_cannot_be_read_stops_nothing_that_is_held(self) -> None:
        self.ask(b"1")
        self.channel._awaited.answered = lambda command: self.ask(b"2") or 1 // 0  # type: ignore[method-assign]
        with self.assertRaises(ZeroDivisionError):
            self.channel.dataReceived(frames(RemotingCommand(0, 1, flag=1)))
        self.assertEqual(self.left(), [[b"1"], [b"2"]])
        self.assertFalse(self.outbox.reading)

    def test_a_stopped_outbox_has_no_timer(self) -> None:
        self.ask(b"1", b"2")
        self.outbox.stop()
        self.outbox.stop()
        self.assertEqual(self.left(), [[b"1"], [b"2"]])
        self.assertEqual([call.func.__name__ for call in self.clock.getDelayedCalls()], ["_timed_out"])

    def test_other_transports_get_each_request_at_once(self) -> None:
        channel = CallingChannel(self.traffic, self.outbox)
        transport = connect(channel)
        for _ in range(3):
            channel.send_one_way(RemotingCommand(9))
        self.assertEqual(len(FrameDecoder().receive_data(transport.value())), 3)
