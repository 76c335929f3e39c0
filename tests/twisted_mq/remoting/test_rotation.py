"""Connections with long work left of a read go on in rounds of bounded length."""

from __future__ import annotations

import functools
import math

import attrs
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.remoting import ClosingTransport, connect, frames, sent
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Channel
from twisted_mq.remoting.rotation import (
    BACKLOG_SECONDS,
    CROWD_SECONDS,
    LONGEST_ROUND_SECONDS,
    ROUND_SECONDS,
    TURN_SECONDS,
    GoesOn,
    Rotation,
)
from twisted_mq.remoting.socket_channel import SLICE_SECONDS, SocketChannel, Traffic

SLOW, QUICK = 10, 11
HONEST = ("192.0.2.7", 54321)
COMMAND_SECONDS = 0.008
MANY = 50


class Unfailing(GoesOn):
    """A connection whose work never fails."""

    def abort(self) -> None:
        raise AssertionError("its work failed")


class RotationCase(SynchronousTestCase):
    """Many connections, each with twenty commands of one read that take long."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.traffic = Traffic({SLOW: self._slow, QUICK: self._quick}, self.clock)
        self.served: list[Channel] = []
        self.channels = [SocketChannel(self.traffic) for _ in range(MANY)]
        self.transports = [connect(channel) for channel in self.channels]
        for channel in self.channels:
            channel.dataReceived(frames(*(RemotingCommand(SLOW, opaque=number) for number in range(20))))

    def _quick(self, channel: Channel, command: RemotingCommand) -> RemotingCommand:
        self.served.append(channel)
        return command.answer()

    def _slow(self, channel: Channel, command: RemotingCommand) -> RemotingCommand:
        self.served.append(channel)
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

    def test_the_last_of_many_reads_waits_and_the_share_that_used_least_is_next(self) -> None:
        honest = SocketChannel(self.traffic)
        transport = connect(honest, ClosingTransport(HONEST))
        self.assertEqual(set(self.served), set(self.channels[:2]))  # the others came in the same poll and wait
        honest.dataReceived(frames(*(RemotingCommand(SLOW, opaque=number) for number in range(2))))
        self.assertEqual(sent(transport), [])
        del self.served[:]
        self.clock.advance(0)
        self.assertEqual([one is honest for one in self.served[:5]], [False, False, True, True, False])
        self.assertEqual([one.opaque for one in sent(transport)], [0, 1])

    def test_connections_of_a_share_that_ask_for_little_have_one_turn_together(self) -> None:
        rotation = Rotation(self.clock)
        called: list[str] = []

        def work(share: str, seconds: float) -> None:
            called.append(share)
            self.clock.rightNow += seconds

        for share, seconds in (("little", TURN_SECONDS / 4), ("much", TURN_SECONDS), ("other", TURN_SECONDS)):
            for _ in range(3):
                rotation.call(share, functools.partial(work, share, seconds))
        self.clock.advance(0)
        self.assertEqual(called, ["little"] * 3 + ["much", "other"] * 3)

    def test_a_connection_that_leaves_in_the_turn_of_its_share_has_none(self) -> None:
        rotation = Rotation(self.clock)
        called: list[str] = []
        second = rotation.call("share", lambda: called.append("second"))
        second.cancel()
        rotation.call("share", lambda: (called.append("first"), third.cancel()))
        third = rotation.call("share", lambda: called.append("third"))
        rotation.call("share", lambda: called.append("fourth"))
        self.clock.advance(0)
        self.assertEqual(called, ["first", "fourth"])

    def test_a_connection_whose_work_fails_is_closed_and_its_share_goes_on(self) -> None:
        """A part of a read that finds no memory is such a failure."""
        rotation, called, closed = Rotation(self.clock), list[str](), list[object]()

        class Fails(GoesOn):
            def go_on(self) -> None:
                raise MemoryError

            def abort(self) -> None:
                closed.append(self)

        rotation.call("share", lambda: called.append("first"))
        failing = Fails()
        rotation.join(failing, "share")
        rotation.call("share", lambda: called.append("third"))
        rotation.call("other", lambda: called.append("other"))
        self.clock.advance(0)
        self.assertEqual((sorted(called), closed), (["first", "other", "third"], [failing]))
        self.assertEqual(len(self.flushLoggedErrors(MemoryError)), 1)
        rotation.call("share", lambda: called.append("later"))
        self.clock.advance(0)
        self.assertEqual(called[-1], "later")

    def test_an_interrupted_round_leaves_the_others_their_turns(self) -> None:
        rotation, called = Rotation(self.clock), list[str]()

        def interrupted() -> None:
            raise KeyboardInterrupt

        rotation.call("share", interrupted)
        rotation.call("share", lambda: called.append("same share"))
        rotation.call("other", lambda: called.append("other"))
        self.assertRaises(KeyboardInterrupt, self.clock.advance, 0)
        self.clock.advance(0)
        self.assertEqual(sorted(called), ["other", "same share"])

    def test_a_read_that_waits_is_decoded_in_its_turn(self) -> None:
        """In this poll the others have taken the time."""
        damaged, unfinished = SocketChannel(self.traffic), SocketChannel(self.traffic)
        transport = connect(damaged, ClosingTransport(HONEST))
        connect(unfinished, ClosingTransport(HONEST))
        before = unfinished.last_active
        damaged.dataReceived(frames(RemotingCommand(QUICK, opaque=5)) + b"\xff" * 8)
        unfinished.dataReceived(frames(RemotingCommand(QUICK))[:-1])
        self.assertEqual((sent(transport), transport.disconnecting), ([], False))
        self.clock.advance(0)
        self.assertEqual(([one.opaque for one in sent(transport)], transport.disconnecting), ([5], True))
        self.assertEqual(unfinished.last_active, before)
        self.assertFalse(self.served.count(unfinished))

    def test_shares_have_the_same_time_whatever_their_turns_and_connections_are(self) -> None:
        used: dict[str, float] = dict.fromkeys("abc", 0.0)
        rotation = Rotation(self.clock)

        @attrs.define(eq=False)
        class Works(Unfailing):
            share: str
            seconds: float

            def go_on(works) -> None:
                self.clock.rightNow += works.seconds
                if sum(used.values()) < 3.0:
                    used[works.share] += works.seconds
                    rotation.join(works, works.share)

        for works in (*(Works("a", 0.01) for _ in range(20)), Works("b", 0.001), Works("c", 0.004)):
            rotation.join(works, works.share)
        self.clock.advance(0)
        for share, seconds in used.items():
            self.assertAlmostEqual(seconds, 1.0, delta=0.05, msg=share)

    def test_a_round_has_a_turn_for_each_share_unless_that_takes_too_long(self) -> None:
        clock = Clock()
        rotation, called = Rotation(clock), list[str]()

        def round_of(shares: int, turns: int) -> list[str]:
            """Return the shares that have turns before the next poll; each wants so many."""
            del called[:]
            for number in range(shares * turns):
                rotation.call(f"{number % shares}", functools.partial(work, f"{number % shares}"))
            rotation._round()
            had = called[:]
            clock.advance(0)
            self.assertEqual(len(called), shares * turns)
            return had

        def work(share: str) -> None:
            called.append(share)
            clock.rightNow += COMMAND_SECONDS

        most = math.ceil(LONGEST_ROUND_SECONDS / COMMAND_SECONDS)
        self.assertEqual(round_of(4, 2), ["0", "1", "2", "3"])
        self.assertEqual(round_of(1, 4), ["0"] * math.ceil(ROUND_SECONDS / COMMAND_SECONDS))
        self.assertEqual(round_of(20, 1), [f"{number}" for number in range(most)])

    def test_many_short_polls_are_no_crowd(self) -> None:
        self.clock.advance(0)
        honest = SocketChannel(self.traffic)
        transport = connect(honest, ClosingTransport(HONEST))
        for _ in range(100):
            honest.dataReceived(frames(RemotingCommand(QUICK)))
            self.assertEqual(len(sent(transport)), 1)
            self.clock.advance(CROWD_SECONDS / 3)

    def test_few_reads_go_before_those_that_wait_for_turns(self) -> None:
        rotation = Rotation(Clock())

        class Waits(Unfailing):
            def go_on(self) -> None:
                rotation.join(self, "a")

        def served() -> float:
            """Return the time that the reads of a poll have before the rest of them wait."""
            start = now = rotation.clock.seconds() + CROWD_SECONDS
            while now < rotation.ask_at or not rotation.is_crowded(now):
                now += 0.0001
            return round(now - start, 3)

        self.assertEqual(served(), CROWD_SECONDS)
        rotation.join(Waits(), "a")
        rotation._polled()
        self.assertEqual(served(), BACKLOG_SECONDS)

    def test_a_connection_that_is_lost_leaves_the_rotation(self) -> None:
        for transport in self.transports:
            transport.abortConnection()
        self.clock.advance(0)
        self.assertEqual([one for one in self.answered() if one], [[0, 1]] * 2)  # the rest of the poll had to wait
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def answered(self) -> list[list[int]]:
        return [[one.opaque for one in sent(transport)] for transport in self.transports]
