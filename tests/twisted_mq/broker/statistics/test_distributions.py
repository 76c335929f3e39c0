"""Distributions by limits, and what the times of requests are noted under."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer, task
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.statistics.distributions import Distribution
from twisted_mq.broker.statistics.request_times import EVERY, EXACT, RequestTimes, names_of_codes
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame

PULL, SEND = int(RequestCode.PULL_MESSAGE), int(RequestCode.SEND_MESSAGE_V2)


def test_a_value_belongs_to_the_first_limit_that_it_does_not_pass() -> None:
    spread = Distribution((1, 5))
    for value in (0, 1, 1.5, 5, 6):
        spread.record(value)
    assert (list(spread.buckets()), spread.total) == ([("1.0", 2), ("5.0", 4), ("+Inf", 5)], 13.5)


class RequestTimesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = task.Clock()
        self.times = RequestTimes(self.clock.seconds)

    def ask(self, code: int, answer: Any, *, flag: int = 0) -> Any:
        """Return the answer of a processor that needs 4 ms."""

        def processor(channel: Any, command: RemotingCommand) -> Any:
            self.clock.advance(0.004)
            if isinstance(answer, Exception):
                raise answer
            return answer

        table: Any = self.times.of({code: processor})
        return table[code](None, RemotingCommand(code, flag=flag))

    def noted(self) -> dict[Any, list[int]]:
        return {key: [count for _, count in spread.buckets()] for key, spread in self.times.times.items()}

    def test_encoded_answers_of_both_forms_are_told_apart_by_their_codes(self) -> None:
        for serialize_type in (0, 1):
            for code in (0, 19, 206, 2007):
                frame = encode_frame(
                    RemotingCommand(code, flag=1, ext_fields={"a": "b"}, serialize_type=serialize_type)
                )
                self.assertEqual(self.ask(PULL, frame), frame)
        within = [0, 0, 2, 2, 2, 2, 2, 2, 2, 2]
        self.assertEqual(self.noted(), {(PULL, code, False, "success"): within for code in (0, 19, 206, 2007)})

    def test_what_comes_later_takes_until_then_and_was_held_where_its_code_waits_for_messages(self) -> None:
        for code in (PULL, SEND):
            later: defer.Deferred[Any] = defer.Deferred()
            self.ask(code, later)
            self.clock.advance(2)
            later.callback(RemotingCommand(19))
        slow = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
        self.assertEqual(self.noted(), {(PULL, 19, True, "success"): slow, (SEND, 19, False, "success"): slow})

    def test_refusals_failures_and_one_way_requests_have_their_own_labels(self) -> None:
        for error in (BrokerError(ResponseCode.NO_PERMISSION, ""), ValueError("fault")):
            self.assertRaises(type(error), self.ask, SEND, error)
        self.ask(SEND, RemotingCommand(0), flag=ONE_WAY_FLAG)
        self.assertEqual(
            sorted(self.times.times), [(SEND, -1, False, "process_request_failed"), (SEND, 0, False, "oneway"),
                                       (SEND, 16, False, "success")],
        )  # fmt: skip

    def test_of_many_requests_some_are_timed_and_stand_for_the_others(self) -> None:
        frame = encode_frame(RemotingCommand(0, flag=1, ext_fields={"a": "b"}))
        table: Any = self.times.of({SEND: lambda channel, command: frame})
        for _ in range(EXACT + 3 * EVERY):
            table[SEND](None, RemotingCommand(SEND))
        (counts,) = self.noted().values()
        self.assertEqual(counts[-1], EXACT + 3 * EVERY)
        self.times.arm()
        table[SEND](None, RemotingCommand(SEND))
        (counts,) = self.noted().values()
        self.assertEqual(counts[-1], EXACT + 3 * EVERY + 1)

    def test_codes_have_apaches_names(self) -> None:
        names = [names_of_codes((SEND, code, False, "")) for code in (0, 19, -1, 9999)]
        sent = "send_message_v2"
        self.assertEqual(names, [(sent, "success"), (sent, "pull_not_found"), (sent, ""), (sent, "9999")])
