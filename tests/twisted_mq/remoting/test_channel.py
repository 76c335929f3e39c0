"""A remoting connection: answers to the peer's requests, and own requests."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from tests.support.remoting import ClosingTransport, connect, frames, sent
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, HeaderError
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand
from twisted_mq.remoting.budget import HELD_OVERHEAD
from twisted_mq.remoting.errors import RemotingSendError, RemotingTimeoutError, RemotingTooMuchRequestError
from twisted_mq.remoting.socket_channel import GRACE_SECONDS, READY_BYTES, SocketChannel, Traffic
from twisted_mq.remoting.transport import MOST_READ_BYTES, USUAL_READ_BYTES

ECHO, LATER, REFUSE, HEADER, BUG, NOTHING, BYTES = range(10, 17)


def request(code: int, opaque: int = 0, body: bytes = b"", flag: int = 0) -> RemotingCommand:
    return RemotingCommand(code, opaque=opaque, body=body, flag=flag)


def told(command: RemotingCommand) -> tuple[int, int, str | None, bytes]:
    """Return the parts of an answer that tests compare."""
    assert command.is_response
    return command.opaque, command.code, command.remark, command.body


class ChannelCase(SynchronousTestCase):
    """A channel whose processors answer at once, later, or not, over a transport in memory."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.later: list[defer.Deferred[Any]] = []
        self.events: list[str] = []
        self.taken: list[int] = []
        self.traffic = Traffic(
            {
                ECHO: lambda _, command: command.answer(body=command.body),
                LATER: lambda _, command: self._answer_later(),
                REFUSE: self._refuse,
                HEADER: self._miss_field,
                BUG: lambda _, command: {}["bug"],
                NOTHING: lambda _, command: None,
                BYTES: lambda _, command: frames(command.answer(body=b"encoded")),
            },
            self.clock,
            channel_made=lambda channel: self.events.append(f"made {channel.address}"),
            channel_lost=lambda channel: self.events.append(f"lost {channel.address}"),
            end_of_read=lambda: self.events.append("end of read"),
        )
        self.channel = SocketChannel(self.traffic)
        self.transport = connect(self.channel)

    def _answer_later(self) -> defer.Deferred[Any]:
        self.later.append(defer.Deferred())
        return self.later[-1]

    def _refuse(self, channel: SocketChannel, command: RemotingCommand) -> None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, "no such topic")

    def _miss_field(self, channel: SocketChannel, command: RemotingCommand) -> None:
        raise HeaderError("PullMessageRequestHeader", "queueId", None, "required")

    def receive(self, *commands: RemotingCommand) -> None:
        self.channel.dataReceived(frames(*commands))


class RequestsOfThePeer(ChannelCase):
    def test_pipelined_requests_are_answered_in_order_and_in_one_write(self) -> None:
        writes: list[bytes] = []
        self.transport.write = writes.append  # type: ignore[method-assign]
        self.receive(request(ECHO, 1, b"a"), request(BYTES, 2), request(ECHO, 3, b"c"))
        self.assertEqual(len(writes), 1)
        self.transport.io.write(writes[0])
        self.assertEqual(
            [told(one) for one in sent(self.transport)],
            [(1, 0, None, b"a"), (2, 0, None, b"encoded"), (3, 0, None, b"c")],
        )

    def test_answers_do_not_wait_for_frames_that_take_long(self) -> None:
        """Answers that are ready before a slow frame's answer leave with it, later ones separately."""
        writes: list[bytes] = []
        self.transport.write = writes.append  # type: ignore[method-assign]
        self.channel._processors = {**self.traffic.processors, LATER: self._answer_slowly}
        self.receive(request(ECHO, 1), request(LATER, 2), request(ECHO, 3), request(ECHO, 4))
        for data in writes:
            self.transport.io.write(data)
        self.assertEqual([told(one)[0] for one in sent(self.transport)], [1, 2, 3, 4])
        self.assertEqual(len(writes), 2)
        self.assertEqual(self.events[1:], ["end of read"])

    def _answer_slowly(self, _: SocketChannel, command: RemotingCommand) -> RemotingCommand:
        self.clock.rightNow += 0.005  # no timer runs meanwhile
        return command.answer()

    def test_end_of_read_is_called_once_after_the_commands_of_a_read(self) -> None:
        self.receive(request(ECHO, 1), request(ECHO, 2))
        self.assertEqual(self.events, ["made 127.0.0.1:54321", "end of read"])

    def test_frame_split_over_reads_is_answered_when_complete(self) -> None:
        data = frames(request(ECHO, 9, b"split"))
        self.channel.dataReceived(data[:7])
        self.assertEqual(sent(self.transport), [])
        self.channel.dataReceived(data[7:])
        self.assertEqual([told(one) for one in sent(self.transport)], [(9, 0, None, b"split")])

    def test_late_answer_is_written_when_it_comes_and_does_not_hold_up_others(self) -> None:
        self.receive(request(LATER, 1), request(ECHO, 2))
        self.assertEqual([told(one) for one in sent(self.transport)], [(2, 0, None, b"")])
        self.assertEqual(self.traffic.pending_answers, 1)
        self.later[0].callback(RemotingCommand(0, body=b"late"))
        self.assertEqual([told(one) for one in sent(self.transport)], [(1, 0, None, b"late")])
        self.assertEqual(self.traffic.pending_answers, 0)

    def test_late_answers_that_come_together_leave_in_one_write(self) -> None:
        writes: list[bytes] = []
        self.receive(request(LATER, 1), request(LATER, 2), request(LATER, 3))
        self.transport.write = writes.append  # type: ignore[method-assign]
        with self.traffic.late.together(), self.traffic.late.together():
            for number in (0, 1):
                self.later[number].callback(request(0))
            self.assertEqual(writes, [])
        self.later[2].callback(request(0))
        self.assertEqual(len(writes), 2)
        self.transport.io.write(b"".join(writes))
        self.assertEqual([one.opaque for one in sent(self.transport)], [1, 2, 3])

    def test_refusal_carries_the_fields_of_its_error(self) -> None:
        error = BrokerError(ResponseCode.NO_PERMISSION, "no").with_fields({"forbiddenType": "3"})
        self.receive(request(LATER, 1))
        self.later[0].errback(error)
        (answer,) = sent(self.transport)
        self.assertEqual((told(answer), answer.ext_fields), ((1, 16, "no", b""), {"forbiddenType": "3"}))

    def test_late_refusal_is_answered_with_its_code(self) -> None:
        self.receive(request(LATER, 1))
        self.later[0].errback(BrokerError(ResponseCode.NO_PERMISSION, "not allowed"))
        self.assertEqual(
            [told(one) for one in sent(self.transport)], [(1, ResponseCode.NO_PERMISSION, "not allowed", b"")]
        )

    def test_late_answer_after_the_connection_is_gone_is_dropped(self) -> None:
        self.receive(request(LATER, 1))
        self.transport.loseConnection()
        self.later[0].callback(RemotingCommand(0))
        self.assertEqual(sent(self.transport), [])
        self.assertEqual(self.traffic.pending_answers, 0)

    def test_one_way_request_gets_no_answer_whatever_happens(self) -> None:
        one_way = ONE_WAY_FLAG
        self.receive(*(request(code, 1, flag=one_way) for code in (ECHO, REFUSE, LATER, 999)))
        self.later[0].callback(RemotingCommand(0))
        self.assertEqual(sent(self.transport), [])

    def test_processor_without_an_answer_writes_nothing(self) -> None:
        self.receive(request(NOTHING, 1))
        self.assertEqual(sent(self.transport), [])

    def test_unknown_code_is_answered_as_apache_does(self) -> None:
        self.receive(request(9999, 5))
        self.assertEqual(
            [told(one) for one in sent(self.transport)],
            [(5, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type 9999 not supported", b"")],
        )

    def test_refusal_carries_code_and_remark(self) -> None:
        self.receive(request(REFUSE, 3))
        self.assertEqual(
            [told(one) for one in sent(self.transport)], [(3, ResponseCode.TOPIC_NOT_EXIST, "no such topic", b"")]
        )

    def test_header_error_names_header_and_field(self) -> None:
        self.receive(request(HEADER, 3))
        self.assertEqual(
            [told(one) for one in sent(self.transport)],
            [(3, ResponseCode.SYSTEM_ERROR, "PullMessageRequestHeader.queueId: required, got None", b"")],
        )

    def test_unexpected_exception_is_answered_and_logged_and_the_connection_lives(self) -> None:
        self.receive(request(BUG, 3), request(ECHO, 4))
        self.assertEqual(
            [told(one) for one in sent(self.transport)],
            [(3, ResponseCode.SYSTEM_ERROR, "KeyError: 'bug'", b""), (4, 0, None, b"")],
        )
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        self.assertFalse(self.transport.disconnecting)

    def test_damaged_frame_closes_with_one_log_line_after_earlier_commands_were_answered(self) -> None:
        damaged = b"\x00\x00\x00\x08\x09\x00\x00\x04abcd"
        with capturedLogs() as events:
            self.channel.dataReceived(frames(request(ECHO, 1, b"before")) + damaged)
            self.channel.dataReceived(frames(request(ECHO, 2)))
        self.assertEqual([told(one) for one in sent(self.transport)], [(1, 0, None, b"before")])
        self.assertTrue(self.transport.disconnecting)
        warnings = [event for event in events if event["log_level"] is LogLevel.warn]
        self.assertEqual(len(warnings), 1)
        self.assertEqual(warnings[0]["peer"], "127.0.0.1:54321")
        self.assertIn("serialize type 9", str(warnings[0]["damage"]))

    def test_oversized_frame_closes_before_its_bytes_arrive(self) -> None:
        self.channel.dataReceived((17 * 1024 * 1024).to_bytes(4, "big"))
        self.assertTrue(self.transport.disconnecting)

    def test_past_the_limit_of_pending_answers_the_answer_is_busy(self) -> None:
        self.traffic.budget.options.max_held_requests = 1
        self.receive(request(LATER, 1), request(LATER, 2))
        (busy,) = sent(self.transport)
        self.assertEqual((busy.opaque, busy.code), (2, ResponseCode.SYSTEM_BUSY))
        self.assertEqual(self.traffic.pending_answers, 1)
        self.later[0].callback(RemotingCommand(0))
        self.receive(request(LATER, 3))
        self.later[2].callback(RemotingCommand(0))
        self.assertEqual([one.opaque for one in sent(self.transport)], [1, 3])

    def test_peer_that_takes_no_answers_is_not_read(self) -> None:
        self.assertIs(self.transport.producer, self.channel)
        self.transport.producer.pauseProducing()
        self.assertEqual(self.transport.producerState, "paused")
        self.transport.producer.resumeProducing()
        self.assertEqual(self.transport.producerState, "producing")
        self.transport.producer.stopProducing()

    def test_what_was_read_waits_while_the_peer_takes_no_answers(self) -> None:
        self.transport.write = self._fill  # type: ignore[method-assign]
        self.channel._processors = {**self.traffic.processors, BYTES: self._answer_long}
        self.receive(*(request(BYTES, opaque) for opaque in range(5)))
        self.assertEqual(self.taken, [0])
        self.assertEqual(self.traffic.budget.unsent_bytes, READY_BYTES + 100)
        self.clock.advance(100)
        self.assertEqual(self.taken, [0])
        for done in range(1, 5):
            self.channel.resumeProducing()
            self.clock.advance(0)
            self.assertEqual(self.taken, list(range(done + 1)))
        self.channel.resumeProducing()
        self.assertEqual(self.transport.producerState, "producing")
        self.assertEqual(self.traffic.budget.unsent_bytes, 0)

    def _answer_long(self, _: SocketChannel, command: RemotingCommand) -> bytes:
        self.taken.append(command.opaque)
        return bytes(READY_BYTES + 100)

    def _fill(self, data: bytes) -> None:
        """A transport whose buffer is full after each write."""
        self.channel.pauseProducing()

    def test_late_answers_for_a_peer_that_takes_none_are_bounded(self) -> None:
        self.traffic.budget.options.max_unsent_bytes_by_channel = 1000
        self.receive(request(LATER, 1), request(LATER, 2), request(LATER, 3))
        self.channel.pauseProducing()
        with capturedLogs() as logged:
            self.later[0].callback(bytes(600))
            self.assertFalse(self.transport.aborted)
            self.later[1].callback(bytes(600))
        self.assertTrue(self.transport.aborted)
        self.assertEqual([event["log_level"] for event in logged], [LogLevel.warn])
        self.later[2].callback(bytes(600))
        self.assertEqual(self.traffic.budget.unsent_bytes, 0)

    def test_frames_in_parts_are_bounded_over_all_channels(self) -> None:
        self.traffic.budget.options.max_incomplete_bytes = 1000
        other = SocketChannel(self.traffic)
        transport = connect(other)
        self.channel.dataReceived(frames(request(ECHO, 1, bytes(900)))[:600])
        other.dataReceived(frames(request(ECHO, 1, bytes(900)))[:600])
        self.assertTrue(self.transport.aborted)
        self.assertFalse(transport.aborted)
        other.dataReceived(frames(request(ECHO, 1, bytes(900)))[600:])
        self.assertEqual(len(sent(transport)), 1)
        self.assertEqual(self.traffic.budget.incomplete_bytes, 0)

    def test_reads_grow_with_frames_that_are_large_and_shrink_with_small_ones(self) -> None:
        large = frames(request(NOTHING, 1, bytes(500_000)))
        small = frames(request(NOTHING, 2)) * 10_000

        def read(data: bytes) -> int:
            self.channel.dataReceived(data)
            return getattr(self.transport, "bufferSize", USUAL_READ_BYTES)

        self.assertEqual(read(large[:1000]), USUAL_READ_BYTES)
        begin = 1000
        for size, next_size in ((USUAL_READ_BYTES, 2 * USUAL_READ_BYTES), (2 * USUAL_READ_BYTES, MOST_READ_BYTES)):
            self.assertEqual(read(large[begin : begin + size]), next_size)
            begin += size
        self.assertEqual(read(large[begin:]), MOST_READ_BYTES)
        self.assertEqual(read(large[:MOST_READ_BYTES]), MOST_READ_BYTES)
        self.channel.dataReceived(large[MOST_READ_BYTES:])
        self.assertEqual(read(small[: MOST_READ_BYTES - 1]), MOST_READ_BYTES)
        self.assertEqual(read(small[MOST_READ_BYTES - 1 : 2 * MOST_READ_BYTES - 1]), USUAL_READ_BYTES)

    def test_reads_keep_their_size_with_frames_neither_few_nor_many(self) -> None:
        some = frames(request(NOTHING, 2, bytes(2000))) * 40
        self.transport.bufferSize = 0
        self.channel.dataReceived(some[:USUAL_READ_BYTES])
        self.assertEqual(self.transport.bufferSize, USUAL_READ_BYTES)

    def test_commands_of_one_read_that_take_long_give_others_their_turn(self) -> None:
        self.channel._processors = {**self.traffic.processors, LATER: self._answer_slowly}
        self.receive(*(request(LATER, opaque) for opaque in range(6)))
        self.assertEqual([one.opaque for one in sent(self.transport)], [0, 1])
        self.assertEqual(self.transport.producerState, "paused")
        self.clock.advance(0)
        self.assertEqual([one.opaque for one in sent(self.transport)], [2, 3, 4, 5])
        self.assertEqual(self.transport.producerState, "producing")

    def test_a_command_that_takes_too_long_is_logged_with_code_and_peer(self) -> None:
        self.channel._processors = {**self.traffic.processors, LATER: lambda _, command: self.clock.advance(0.2)}
        with capturedLogs() as logged:
            self.receive(request(ECHO, 1), request(LATER, 2))
        (event,) = logged
        self.assertEqual((event["code"], event["peer"]), (LATER, "127.0.0.1:54321"))
        self.assertEqual(self.traffic.long_turns, 1)

    def test_pending_answers_of_one_channel_are_bounded(self) -> None:
        self.traffic.budget.options.max_held_requests_by_channel = 1
        other = SocketChannel(self.traffic)
        connect(other)
        self.receive(request(LATER, 1), request(LATER, 2))
        self.assertEqual([(one.opaque, one.code) for one in sent(self.transport)], [(2, ResponseCode.SYSTEM_BUSY)])
        other.dataReceived(frames(request(LATER, 1)))
        self.assertEqual(self.traffic.pending_answers, 2)
        self.later[0].callback(None)
        self.receive(request(LATER, 3))
        self.assertEqual(self.traffic.pending_answers, 2)

    def test_bytes_of_requests_that_wait_are_bounded_and_let_go_with_their_answers(self) -> None:
        budget = self.traffic.budget
        budget.options.max_held_bytes_by_channel = 10_000
        body, fields = bytes(6000), {"subscription": "x" * 900}
        for opaque in (1, 2):
            self.receive(RemotingCommand(LATER, opaque, body=body, ext_fields=fields))
        self.assertEqual([(one.opaque, one.code) for one in sent(self.transport)], [(2, ResponseCode.SYSTEM_BUSY)])
        self.assertTrue(6900 < budget.held_bytes <= 10_000)
        self.later[0].callback(RemotingCommand(0))
        self.assertEqual(budget.held_bytes, 0)
        self.receive(RemotingCommand(LATER, 3, body=body))
        self.transport.loseConnection()
        self.assertEqual(budget.held_bytes, 6000 + HELD_OVERHEAD)
        self.later[2].callback(RemotingCommand(0))
        self.assertEqual(budget.held_bytes, 0)

    def test_a_closed_channel_whose_peer_takes_nothing_is_cut_off(self) -> None:
        self.transport.loseConnection = lambda: None  # type: ignore[method-assign]
        self.channel.pauseProducing()
        self.channel.close()
        self.assertIs(self.transport.producer, None)
        self.clock.advance(GRACE_SECONDS - 0.1)
        self.assertFalse(self.transport.aborted)
        self.clock.advance(0.1)
        self.assertTrue(self.transport.aborted)

    def test_calling_side_reads_on_while_its_own_writes_wait(self) -> None:
        """Both ends waiting for the other to read would never end."""
        transport = connect(SocketChannel(Traffic({}, self.clock, pause_reading=False)))
        self.assertIs(transport.producer, None)


class OwnRequests(ChannelCase):
    def test_answers_are_matched_by_opaque_in_any_order(self) -> None:
        first = self.channel.send_request(request(ECHO, body=b"1"), 3)
        second = self.channel.send_request(request(ECHO, body=b"2"), 3)
        one, two = sent(self.transport)
        self.receive(two.answer(body=b"second"), one.answer(body=b"first"))
        self.assertEqual(self.successResultOf(first).body, b"first")
        self.assertEqual(self.successResultOf(second).body, b"second")
        self.transport.loseConnection()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_no_answer_in_time_fails_and_the_late_one_is_ignored(self) -> None:
        waiting = self.channel.send_request(request(ECHO), 3)
        (asked,) = sent(self.transport)
        self.clock.advance(3)
        error = self.failureResultOf(waiting, RemotingTimeoutError).value
        self.assertEqual(str(error), "no answer from 127.0.0.1:54321 within 3 s")
        self.receive(asked.answer())
        self.assertFalse(self.transport.disconnecting)

    def test_connection_loss_fails_all_that_wait(self) -> None:
        waiting = [self.channel.send_request(request(ECHO), 3) for _ in range(2)]
        self.transport.loseConnection()
        for one in waiting:
            self.failureResultOf(one, RemotingSendError)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.events, ["made 127.0.0.1:54321", "lost 127.0.0.1:54321"])

    def test_request_after_the_loss_fails_at_once(self) -> None:
        self.transport.loseConnection()
        self.failureResultOf(self.channel.send_request(request(ECHO), 3), RemotingSendError)
        self.channel.send_one_way(request(ECHO))
        self.channel.close()
        self.channel.abort()
        self.assertEqual(sent(self.transport), [])

    def test_cancelled_request_leaves_no_timer_behind_its_time(self) -> None:
        waiting = self.channel.send_request(request(ECHO), 3)
        waiting.cancel()
        self.failureResultOf(waiting, defer.CancelledError)
        self.clock.advance(3)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_one_command_sent_twice_is_two_requests(self) -> None:
        command = request(ECHO)
        first, second = self.channel.send_request(command, 3), self.channel.send_request(command, 3)
        first.cancel()
        self.failureResultOf(first, defer.CancelledError)
        self.receive(sent(self.transport)[1].answer(body=b"second"))
        self.assertEqual(self.successResultOf(second).body, b"second")

    def test_requests_that_wait_are_bounded(self) -> None:
        self.traffic.max_awaited = 1
        first = self.channel.send_request(request(ECHO), 3)
        self.failureResultOf(self.channel.send_request(request(ECHO), 3), RemotingTooMuchRequestError)
        self.receive(sent(self.transport)[0].answer())
        self.successResultOf(first)

    def test_a_peer_that_takes_nothing_gets_no_request(self) -> None:
        self.channel.pauseProducing()
        self.failureResultOf(self.channel.send_request(request(ECHO), 3), RemotingTooMuchRequestError)
        self.channel.send_one_way(request(ECHO))
        self.assertEqual((sent(self.transport), self.traffic.requests_dropped), ([], 1))
        self.channel.resumeProducing()
        self.channel.send_one_way(request(ECHO))
        self.assertEqual(len(sent(self.transport)), 1)

    def test_a_request_that_the_peer_does_not_take_is_counted(self) -> None:
        self.transport.write = lambda data: self.channel.pauseProducing()  # type: ignore[method-assign]
        self.channel.send_one_way(request(ECHO, body=bytes(5000)))
        self.assertGreater(self.traffic.budget.unsent_bytes, 5000)
        self.channel.resumeProducing()
        self.assertEqual(self.traffic.budget.unsent_bytes, 0)

    def test_a_peer_that_left_a_request_without_an_answer_gets_one_at_a_time(self) -> None:
        late = self.channel.send_request(request(ECHO), 3)
        self.clock.advance(3)
        self.failureResultOf(late, RemotingTimeoutError)
        first = self.channel.send_request(request(ECHO), 3)
        self.failureResultOf(self.channel.send_request(request(ECHO), 3), RemotingTooMuchRequestError)
        self.receive(sent(self.transport)[1].answer())
        self.successResultOf(first)
        again = [self.channel.send_request(request(ECHO), 3) for _ in range(2)]
        self.receive(*(command.answer() for command in sent(self.transport)))
        self.assertEqual([self.successResultOf(one).code for one in again], [0, 0])

    def test_one_way_carries_its_flag(self) -> None:
        self.channel.send_one_way(request(ECHO, body=b"x"))
        (command,) = sent(self.transport)
        self.assertTrue(command.is_one_way)

    def test_answer_nobody_waits_for_is_ignored(self) -> None:
        self.receive(request(0, 77).answer())
        self.assertEqual(sent(self.transport), [])
        self.assertFalse(self.transport.disconnecting)

    def test_close_is_harmless_twice(self) -> None:
        self.channel.close()
        self.channel.close()
        self.assertFalse(self.channel.connected_now)

    def test_abort_cuts_the_connection(self) -> None:
        self.channel.abort()
        self.assertTrue(self.transport.aborted)


class Addresses(SynchronousTestCase):
    def test_channel_knows_its_peer(self) -> None:
        channel = SocketChannel(Traffic({}, Clock()))
        connect(channel, ClosingTransport(("10.1.2.3", 7777)))
        self.assertEqual(channel.remote_address, ("10.1.2.3", 7777))
        self.assertEqual(repr(channel), "<Channel 10.1.2.3:7777>")
