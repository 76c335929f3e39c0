"""Batches that are split by size, and batches that gather by themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import defer

from tests.twisted_mq.client.producing.test_producer import ProducerCase
from twisted_mq.client import (
    AutoBatch,
    BatchIncomplete,
    Message,
    MessageIllegal,
    ProducerOptions,
    SendLimits,
    SendRefused,
)
from twisted_mq.client.producing.batch_splitting import split_batch
from twisted_mq.client.producing.outgoing import outgoing_batch
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError

BATCH, SEND = RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_MESSAGE_V2
SMALL = ProducerOptions(limits=SendLimits(max_message_size=400))
GATHERING = ProducerOptions(auto_batch=AutoBatch(max_bytes=100))


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=30), st.integers(100, 2000))
def test_batches_are_as_few_as_their_sizes_allow_and_keep_the_order(bodies: list[bytes], most: int) -> None:
    messages = [Message("T", body, tags="A") for body in bodies]
    batches = list(split_batch(messages, most))
    assert [one for batch in batches for one in batch] == messages
    sizes = [len(outgoing_batch(batch, ["0" * 32] * len(batch)).body) for batch in batches]
    assert all(size <= most or len(batch) == 1 for size, batch in zip(sizes, batches, strict=True))
    firsts = [len(outgoing_batch(batch[:1], ["0" * 32]).body) for batch in batches]
    assert all(size + first > most for size, first in zip(sizes, firsts[1:], strict=False))


class Splitting(ProducerCase):
    def test_messages_too_large_together_are_refused_in_one_batch(self) -> None:
        producer = self.started(SMALL)
        error = self.run_to_failure(producer.send_batch([Message("T", b"x" * 200)] * 2), MessageIllegal)
        self.assertIn("use send_batches, which splits it", str(error))
        self.assertEqual(self.stored(self.a), [])

    def test_messages_leave_in_as_many_batches_as_they_need(self) -> None:
        producer = self.started(SMALL)
        results = self.run_to_end(producer.send_batches([Message("T", b"%03d" % number) for number in range(20)]))
        self.assertEqual(len(self.a.headers(BATCH)), len(results))
        self.assertEqual(sum(len(one.msg_id.split(",")) for one in results), 20)
        self.assertEqual(sorted(one.body for one in self.stored(self.a)), [b"%03d" % number for number in range(20)])

    def test_a_batch_that_fails_names_what_was_stored_and_what_is_left(self) -> None:
        producer = self.started(SMALL)
        process = self.a.factory.traffic.processors[BATCH]

        def once(channel: object, request: object) -> object:
            answer = process(channel, request)
            self.a.refuse[BATCH] = BrokerError(ResponseCode.MESSAGE_ILLEGAL, "no")
            return answer

        self.a.factory.traffic.processors[BATCH] = once
        messages = [Message("T", b"%03d" % number) for number in range(9)]
        error = self.run_to_failure(producer.send_batches(messages), BatchIncomplete)
        stored = len(self.stored(self.a))
        self.assertEqual((len(error.results), list(error.unsent)), (1, messages[stored:]))
        self.assertIsInstance(error.__cause__, SendRefused)


class Gathering(ProducerCase):
    def test_messages_of_one_moment_leave_together_and_each_has_its_own_result(self) -> None:
        producer = self.started(GATHERING)
        sends = [producer.send(Message("T", b"%d" % number, tags="A")) for number in range(3)]
        self.settle()
        self.assertEqual([one.called for one in sends], [False] * 3)
        self.advance(0.02)
        results = [self.successResultOf(one) for one in sends]
        self.assertEqual((len(self.a.headers(BATCH)), len(self.a.headers(SEND))), (1, 0))
        stored = self.stored(self.a)
        self.assertEqual([one.msg_id for one in results], [one.properties["UNIQ_KEY"] for one in stored])
        self.assertEqual([one.queue_offset for one in results], [0, 1, 2])
        self.assertEqual(len({one.offset_msg_id for one in results}), 3)

    def test_a_full_batch_leaves_at_once(self) -> None:
        producer = self.started(GATHERING)
        sends = [producer.send(Message("T", b"x" * 40)) for _ in range(3)]
        self.settle()
        self.assertEqual([one.called for one in sends], [True, True, False])
        self.run_to_end(producer.stop())
        self.assertEqual([self.successResultOf(one).status.name for one in sends], ["SEND_OK"] * 3)
        self.assert_no_timers()

    def test_what_cannot_be_in_a_batch_goes_alone(self) -> None:
        producer = self.started(GATHERING)
        for message in (
            Message("T", b"x", delay_time_level=3),
            Message("T", b"x" * 100),
            Message("T", b"x", delay_time_seconds=0.005),
        ):
            self.run_to_end(producer.send(message))
        self.run_to_end(producer.send(Message("T", b"x"), timeout_seconds=3))
        self.assertEqual((len(self.a.headers(BATCH)), len(self.a.headers(SEND))), (0, 4))

    def test_illegal_message_fails_alone(self) -> None:
        producer = self.started(GATHERING)
        good = producer.send(Message("T", b"x"))
        self.run_to_failure(producer.send(Message("T", b"")), MessageIllegal)
        self.advance(0.02)
        self.successResultOf(good)

    def test_tags_and_queues_are_kept_apart(self) -> None:
        producer = self.started(GATHERING)
        sends = [producer.send(Message("T", b"x", tags=tag)) for tag in ("A", "B", "A")]
        self.advance(0.02)
        for one in sends:
            self.successResultOf(one)
        self.assertEqual(len(self.a.headers(BATCH)), 2)

    def test_send_that_is_given_up_leaves_the_others_alone(self) -> None:
        producer = self.started(GATHERING)
        first, second = producer.send(Message("T", b"1")), producer.send(Message("T", b"2"))
        first.cancel()
        self.failureResultOf(first, defer.CancelledError)
        self.advance(0.02)
        self.assertEqual(self.successResultOf(second).queue_offset, 1)
