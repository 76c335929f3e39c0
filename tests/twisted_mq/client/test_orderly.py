"""Consuming in order: one call after the other in each queue, by one member of the group."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

from twisted.internet import defer

from tests.support.client_case import ClientCase
from twisted_mq.client import (
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    MessageModel,
    PushConsumer,
)
from twisted_mq.client.consuming.queue_locks import QueueLocks
from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, ConsumerRunningInfo, MessageQueue, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.wire.command import RemotingCommand

OK, AGAIN = ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
QUEUE = MessageQueue("T", "broker-a", 0)


class Orderly(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 2, "%RETRY%g": 1})
        self.seen: list[tuple[str, bytes, int]] = []
        self.answers: dict[bytes, list[Any]] = {}

    def listen(self, name: str, messages: list[MessageExt], context: ConsumeOrderlyContext) -> Any:
        self.seen += [(name, message.body, message.reconsume_times) for message in messages]
        answers = self.answers.get(messages[0].body)
        answer = answers.pop(0) if answers else OK
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, float):
            context.suspend_current_queue_seconds = answer
            return AGAIN
        return answer

    def started(self, name: str = "c1", **options: Any) -> PushConsumer:
        consumer = PushConsumer(
            self.clock, "g", instance_name=name, **self.client_arguments(),
            options=ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, **options),
        )  # fmt: skip
        consumer.subscribe("T")
        consumer.listen_orderly(lambda messages, context: self.listen(name, messages, context))
        self.run_to_end(consumer.start())
        self.advance(1)
        return consumer

    def bodies(self) -> list[bytes]:
        return [body for _, body, _ in self.seen]

    def test_a_queue_waits_for_its_open_call_and_others_do_not(self) -> None:
        held = self.answers[b"a0"] = [defer.Deferred()]
        (waiting,) = held
        self.broker.put("T", 0, b"a0", b"a1", b"a2")
        self.broker.put("T", 1, b"b0", b"b1")
        self.started()
        self.assertEqual(sorted(self.bodies()), [b"a0", b"b0", b"b1"])
        waiting.callback(OK)
        self.settle()
        self.assertEqual([body for body in self.bodies() if body.startswith(b"a")], [b"a0", b"a1", b"a2"])

    def test_as_many_calls_as_allowed_are_open(self) -> None:
        first: defer.Deferred[Any] = defer.Deferred()
        self.answers = {b"a0": [first], b"b0": [defer.Deferred()]}
        self.broker.put("T", 0, b"a0")
        self.broker.put("T", 1, b"b0")
        self.started(concurrency=1)
        self.assertEqual(self.bodies(), [b"a0"])
        first.callback(OK)
        self.settle()
        self.assertEqual(self.bodies(), [b"a0", b"b0"])

    def test_offsets_follow_what_was_consumed(self) -> None:
        self.answers[b"a2"] = [defer.Deferred()]
        self.broker.put("T", 0, b"a0", b"a1", b"a2")
        self.started()
        self.advance(5)
        self.assertEqual(self.broker.offsets["g", "T", 0], 2)

    def test_refused_message_holds_its_queue_back_and_comes_again(self) -> None:
        self.answers[b"a0"] = [AGAIN, RuntimeError("counts as refused"), 4.0]
        self.broker.put("T", 0, b"a0", b"a1")
        self.started()
        self.assertEqual(self.seen, [("c1", b"a0", 0)])
        self.advance(1)
        self.assertEqual(self.seen[1:], [("c1", b"a0", 1)])
        self.advance(1)
        self.assertEqual(self.seen[2:], [("c1", b"a0", 2)])
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.advance(3)
        self.assertEqual(len(self.seen), 3)
        self.advance(1)
        self.assertEqual(self.seen[3:], [("c1", b"a0", 3), ("c1", b"a1", 0)])

    def test_message_refused_too_often_becomes_a_dead_letter_and_its_queue_goes_on(self) -> None:
        self.answers[b"a0"] = [AGAIN] * 3
        self.broker.put("T", 0, b"a0", b"a1")
        self.started(max_reconsume_times=2)
        self.advance(2)
        self.assertEqual(self.seen, [("c1", b"a0", 0), ("c1", b"a0", 1), ("c1", b"a0", 2), ("c1", b"a1", 0)])
        (header,) = self.broker.sent_back
        self.assertEqual((header.delay_level, header.offset), (-1, 0))

    def test_several_messages_a_call_keep_their_order(self) -> None:
        self.broker.put("T", 0, *[b"a%d" % number for number in range(5)])
        self.answers[b"a0"] = [AGAIN]
        self.started(consume_message_batch_max_size=3)
        self.advance(1)
        self.assertEqual(self.bodies(), [b"a0", b"a1", b"a2", b"a0", b"a1", b"a2", b"a3", b"a4"])

    def test_queues_are_pulled_only_when_they_are_locked(self) -> None:
        self.broker.locks[QUEUE] = "someone else"
        self.broker.put("T", 0, b"a0")
        consumer = self.started()
        self.assertNotIn(QUEUE, consumer.queues)
        del self.broker.locks[QUEUE]
        self.advance(5)
        self.assertEqual(self.bodies(), [b"a0"])
        self.assertEqual(self.broker.locks[QUEUE], consumer.client.client_id)

    def test_locks_are_renewed_every_twenty_seconds(self) -> None:
        self.started()
        before = len(self.broker.headers(RequestCode.LOCK_BATCH_MQ))
        self.advance(20)
        (renewal,) = self.broker.headers(RequestCode.LOCK_BATCH_MQ)[before:]
        self.assertEqual([queue.queue_id for queue in renewal.mq_set if queue.topic == "T"], [0, 1])

    def test_a_renewal_that_fails_unexpectedly_is_not_the_last(self) -> None:
        self.started()
        with (
            patch.object(QueueLocks, "_ask", side_effect=KeyError("broker-a")),
            self.assertLogs("twisted_mq.periodic", "CRITICAL") as logged,
        ):
            self.advance(20)
        before = len(self.broker.headers(RequestCode.LOCK_BATCH_MQ))
        self.advance(20)
        self.assertEqual((len(logged.output), len(self.broker.headers(RequestCode.LOCK_BATCH_MQ)) - before), (1, 1))

    def test_queue_whose_lock_went_to_another_rests_until_it_is_ours_again(self) -> None:
        self.started()
        self.broker.locks[QUEUE] = "someone else"
        self.advance(20)
        self.broker.put("T", 0, b"a0")
        self.advance(2)
        self.assertEqual(self.seen, [])
        del self.broker.locks[QUEUE]
        self.advance(0.5)
        self.assertEqual(self.bodies(), [b"a0"])

    def test_queue_whose_lock_goes_while_it_waits_for_other_calls_is_not_consumed(self) -> None:
        other: defer.Deferred[Any] = defer.Deferred()
        self.answers[b"b0"] = [other]
        self.broker.put("T", 1, b"b0")
        self.started(concurrency=1)
        self.broker.put("T", 0, b"a0")
        self.advance(1)
        self.broker.locks[QUEUE] = "someone else"
        self.advance(20)
        other.callback(OK)
        self.advance(2)
        self.assertEqual(self.bodies(), [b"b0"])
        del self.broker.locks[QUEUE]
        self.advance(0.5)
        self.assertEqual(self.bodies(), [b"b0", b"a0"])

    def test_next_member_goes_on_where_the_last_one_stopped(self) -> None:
        self.broker.put("T", 0, b"a0")
        first = self.started("c1")
        self.run_to_end(first.stop())
        self.assertEqual(self.broker.locks, {})
        self.broker.put("T", 0, b"a1")
        self.started("c2")
        self.assertEqual([(name, body) for name, body, _ in self.seen], [("c1", b"a0"), ("c2", b"a1")])
        self.run_to_end(self.begin(defer.succeed(None)))

    def test_a_second_member_gets_a_queue_when_the_first_ones_call_has_ended(self) -> None:
        waiting: defer.Deferred[Any] = defer.Deferred()
        first = self.started("c1")
        self.answers[b"b0"] = [waiting]
        self.broker.put("T", 1, b"b0", b"b1")
        self.settle()
        second = self.started("c2")
        self.advance(3)
        moved = MessageQueue("T", "broker-a", 1)
        self.assertEqual(([moved in one.queues for one in (first, second)]), [False, False])
        self.assertEqual(self.broker.locks[moved], first.client.client_id)
        waiting.callback(OK)
        self.advance(10)
        self.assertEqual(self.broker.locks[moved], second.client.client_id)
        self.assertEqual([one[:2] for one in self.seen], [("c1", b"b0"), ("c2", b"b0"), ("c2", b"b1")])

    def test_a_queue_that_comes_back_counts_its_tries_anew(self) -> None:
        self.answers[b"b0"] = [AGAIN] * 100
        self.started("c1")
        self.broker.put("T", 1, b"b0")
        self.advance(3)
        second = self.started("c2")
        self.advance(10)
        self.run_to_end(second.stop())
        self.advance(30)
        turns = [tuple(group) for _, group in itertools.groupby(self.seen, key=lambda one: one[0])]
        self.assertEqual([turn[0] for turn in turns], [("c1", b"b0", 0), ("c2", b"b0", 0), ("c1", b"b0", 0)])
        self.assertEqual([times for _, _, times in turns[0]], list(range(len(turns[0]))))

    def test_a_call_that_ends_soon_is_committed_before_the_queue_goes_over(self) -> None:
        waiting: defer.Deferred[Any] = defer.Deferred()
        self.started("c1")
        self.answers[b"b0"] = [waiting]
        self.broker.put("T", 1, b"b0", b"b1")
        self.clock.callLater(0.5, waiting.callback, OK)
        self.settle()
        self.started("c2")
        self.advance(10)
        self.assertEqual([one[:2] for one in self.seen], [("c1", b"b0"), ("c2", b"b1")])

    def test_stop_lets_the_open_call_end_and_commits_it(self) -> None:
        waiting: defer.Deferred[Any] = defer.Deferred()
        self.answers[b"a0"] = [waiting]
        self.broker.put("T", 0, b"a0", b"a1")
        consumer = self.started()
        stopped = self.begin(consumer.stop())
        self.assertNoResult(stopped)
        waiting.callback(OK)
        self.settle()
        self.successResultOf(stopped)
        self.assertEqual((self.bodies(), self.broker.offsets["g", "T", 0]), ([b"a0"], 1))
        self.assert_no_timers()

    def test_stop_cancels_what_does_not_end(self) -> None:
        self.answers[b"a0"] = [defer.Deferred()]
        self.answers[b"b0"] = [AGAIN]
        self.broker.put("T", 0, b"a0")
        self.broker.put("T", 1, b"b0")
        stopped = self.begin(self.started().stop(finish_seconds=2))
        self.advance(2.25)
        self.successResultOf(stopped)
        self.assertEqual(self.broker.offsets.get(("g", "T", 0), 0), 0)
        self.assert_no_timers()

    def test_broadcast_messages_come_in_order_without_locks(self) -> None:
        self.answers[b"a0"] = [AGAIN]
        self.broker.put("T", 0, b"a0", b"a1")
        self.started(message_model=MessageModel.BROADCASTING)
        self.advance(1)
        self.assertEqual(self.bodies(), [b"a0", b"a0", b"a1"])
        self.assertEqual(self.broker.headers(RequestCode.LOCK_BATCH_MQ), [])

    def test_administrators_see_that_it_consumes_in_order(self) -> None:
        self.broker.put("T", 0, b"a0")
        self.started()
        fields = {"consumerGroup": "g", "clientId": "x", "jstackEnable": "false"}
        info = decode_body(ConsumerRunningInfo, self.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields).body)
        self.assertEqual((info.properties["PROP_CONSUMEORDERLY"], info.mq_table[QUEUE].locked), ("true", True))
        self.answers[b"a0"] = [AGAIN]
        record = self.broker.queues["T", 0][0].record
        answer = self.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, record)
        result = decode_body(ConsumeMessageDirectlyResult, answer.body)
        self.assertEqual((result.order, result.consume_result), (True, "CR_LATER"))

    def ask(self, code: int, fields: dict[str, str], body: bytes = b"") -> RemotingCommand:
        return self.run_to_end(self.broker.client("g").send_request(RemotingCommand.request(code, fields, body), 3))
