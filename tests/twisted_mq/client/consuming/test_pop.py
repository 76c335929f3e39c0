"""Push consumers whose queues a broker divides, and that pop what it says, against a broker in memory."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer

from tests.support.fake_broker import FakeBroker
from tests.twisted_mq.client.consuming.test_push_consumer import ConsumerCase
from twisted_mq.client import ConsumeStatus, PushConsumer
from twisted_mq.client.consuming.pop_answers import DELAY_SECONDS
from twisted_mq.protocol.bodies import (
    MessageQueue,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from twisted_mq.protocol.names.pop_receipt import Receipt, join_infos, message_offset_info, start_offset_info
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header

OK, LATER = ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER
Place = tuple[str, int, int]


class PopBroker(FakeBroker):
    """Hands out what is visible; what is not answered for is visible again after its time, with one try more."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.clock = arguments[0].clock
        self.mode = "POP"
        self.acked: list[Place] = []
        self.visible_at: dict[Place, float] = {}
        self.tries: dict[Place, int] = {}
        self.changed: list[int] = []
        self.factory.traffic.processors.update({
            RequestCode.QUERY_ASSIGNMENT: self._assign,
            RequestCode.POP_MESSAGE: self._pop,
            RequestCode.ACK_MESSAGE: self._ack,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: self._change,
        })  # fmt: skip

    def _assign(self, channel: Any, request: RemotingCommand) -> RemotingCommand:
        asked = decode_body(QueryAssignmentRequestBody, request.body)
        ids = [-1] if self.mode == "POP" else [0, 1]
        told = [MessageQueueAssignment(MessageQueue(asked.topic or "", self.name, one), self.mode) for one in ids]
        return request.answer(body=encode_body(QueryAssignmentResponseBody(told)))

    def _pop(self, channel: Any, request: RemotingCommand) -> Any:
        header = self.note(request, PopMessageRequestHeader)
        answer = self._popped(request, header)
        if answer is not None:
            return answer
        later: defer.Deferred[Any] = defer.Deferred()
        end = self.clock.seconds() + header.poll_time / 1000

        def again() -> None:
            answer = self._popped(request, header)
            if answer is None and self.clock.seconds() >= end:
                later.callback(request.answer(ResponseCode.POLLING_TIMEOUT))
            elif answer is None:
                self.clock.callLater(0.25, again)
            else:
                later.callback(answer)

        self.clock.callLater(0.25, again)
        return later

    def _popped(self, request: RemotingCommand, header: PopMessageRequestHeader) -> RemotingCommand | None:
        now = self.clock.seconds()
        places = [
            (topic, queue, offset)
            for (topic, queue), stored in sorted(self.queues.items())
            for offset in range(len(stored))
            if topic == header.topic
        ]
        ready = [one for one in places if one not in self.acked and self.visible_at.get(one, 0) <= now]
        ready = ready[: header.max_msg_nums]
        if not ready:
            return None
        for one in ready:
            self.visible_at[one] = now + header.invisible_time / 1000
        queues = {queue: [offset for _, held, offset in ready if held == queue] for _, queue, _ in ready}
        answer = PopMessageResponseHeader(
            pop_time=int(now * 1000), invisible_time=header.invisible_time, revive_qid=0, rest_num=0,
            start_offset_info=join_infos(start_offset_info(header.topic, one, min(queues[one])) for one in queues),
            msg_offset_info=join_infos(message_offset_info(header.topic, one, queues[one]) for one in queues),
        )  # fmt: skip
        return request.answer(ext_fields=encode_header(answer), body=b"".join(map(self._record, ready)))

    def _record(self, place: Place) -> bytes:
        record = self.queues[place[:2]][place[2]].record
        tries = self.tries.get(place, 0)
        self.tries[place] = tries + 1
        at = 4 + 4 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 8 + 8  # reconsumeTimes of a record with IPv4 hosts
        return record[:at] + tries.to_bytes(4, "big") + record[at + 4 :]

    def _ack(self, channel: Any, request: RemotingCommand) -> RemotingCommand:
        header = self.note(request, AckMessageRequestHeader)
        self.acked.append((header.topic, header.queue_id, header.offset))
        return request.answer()

    def _change(self, channel: Any, request: RemotingCommand) -> RemotingCommand:
        header = self.note(request, ChangeInvisibleTimeRequestHeader)
        self.changed.append(header.invisible_time)
        self.visible_at[header.topic, header.queue_id, header.offset] = (
            self.clock.seconds() + header.invisible_time / 1000
        )
        return request.answer()


class Popping(ConsumerCase):
    def setUp(self) -> None:
        super().setUp()
        self.cluster.routes.clear()
        self.broker = self.cluster.add_broker("broker-p", {"T": 2, "%RETRY%g": 1}, kind=PopBroker)

    def popping(self, **rest: Any) -> PushConsumer:
        options = {"client_rebalance": False, **rest.pop("options", {})}
        return self.started(options=options, **rest)

    def test_popped_messages_are_consumed_and_acknowledged(self) -> None:
        self.send_all(b"1", b"2", b"3", b"4")
        consumer = self.popping()
        self.advance(2)
        self.assertEqual(sorted(self.seen["c1"]), [b"1", b"2", b"3", b"4"])
        self.assertEqual(sorted(self.broker.acked), [("T", 0, 0), ("T", 0, 1), ("T", 1, 0), ("T", 1, 1)])
        self.assertEqual([one.queue_id for one in consumer.queues if one.topic == "T"], [-1])
        self.assertEqual(self.broker.headers(RequestCode.PULL_MESSAGE), [])
        (ack, *_) = self.broker.headers(RequestCode.ACK_MESSAGE)
        receipt = Receipt.parse(ack.extra_info)
        self.assertEqual(
            (receipt.broker_name, receipt.queue_id, receipt.queue_offset), ("broker-p", ack.queue_id, ack.offset)
        )

    def test_refused_message_comes_again_later_each_time_and_then_is_a_dead_letter(self) -> None:
        self.answer = LATER
        self.send_all(b"bad")
        self.popping(options={"max_reconsume_times": 2})
        self.advance(2)
        self.assertEqual(self.broker.changed, [DELAY_SECONDS[0] * 1000])
        self.advance(DELAY_SECONDS[0] + 1)
        self.assertEqual(self.broker.changed, [DELAY_SECONDS[0] * 1000, DELAY_SECONDS[1] * 1000])
        self.advance(DELAY_SECONDS[1] + 1)
        self.assertEqual(self.seen["c1"], [b"bad"] * 3)
        (back,) = self.broker.sent_back
        self.assertEqual((back.delay_level, back.group, len(self.broker.acked)), (-1, "g", 1))

    def test_message_consumed_for_too_long_is_told_and_comes_again(self) -> None:
        waiting: defer.Deferred[Any] = defer.Deferred()
        self.answer = waiting
        self.send_all(b"slow")
        self.popping(options={"pop_invisible_seconds": 5})
        self.advance(8)
        self.assertEqual(self.seen["c1"], [b"slow"] * 2)

    def test_message_that_waited_longer_than_it_is_invisible_is_left_to_come_again(self) -> None:
        waiting: defer.Deferred[Any] = defer.Deferred()
        self.answer = waiting
        self.send_all(b"1", b"2")
        self.popping(options={"pop_invisible_seconds": 5, "concurrency": 1, "pop_batch_size": 2})
        self.advance(4)
        self.assertEqual(len(self.seen["c1"]), 1)
        self.broker.visible_at = dict.fromkeys(self.broker.visible_at, float("inf"))
        self.advance(3)
        waiting.callback(OK)
        self.settle()
        self.assertEqual((len(self.seen["c1"]), len(self.broker.acked)), (1, 1))

    def test_only_so_many_messages_are_held_unanswered(self) -> None:
        self.answer = defer.Deferred()
        self.send_all(*(b"%d" % number for number in range(12)))
        self.popping(options={"pop_batch_size": 2, "pop_threshold": 3, "concurrency": 1})
        self.advance(2)
        self.assertEqual(len(self.broker.visible_at), 4)

    def test_tags_that_are_not_subscribed_are_acknowledged_unseen(self) -> None:
        self.send_all(b"b", tags="B")
        self.popping(expression="A")
        self.advance(2)
        self.assertEqual((self.seen, len(self.broker.acked)), ({}, 1))

    def test_queues_given_to_be_pulled_are_pulled_and_switched_when_the_mode_changes(self) -> None:
        self.broker.mode = "PULL"
        consumer = self.popping()
        self.send_all(b"1")
        self.advance(2)
        self.assertEqual((self.seen["c1"], self.broker.acked), ([b"1"], []))
        self.assertIn("%RETRY%g_T", consumer.subscriptions)
        self.broker.mode = "POP"
        self.advance(21)
        self.assertEqual([one.queue_id for one in consumer.queues if one.topic == "T"], [-1])
        self.assertNotIn("%RETRY%g_T", consumer.subscriptions)

    def test_stopping_acknowledges_what_is_being_consumed(self) -> None:
        waiting: defer.Deferred[Any] = defer.Deferred()
        self.answer = waiting
        self.send_all(b"1")
        consumer = self.popping()
        self.advance(1)
        stopping = self.begin(consumer.stop())
        self.assertNoResult(stopping)
        waiting.callback(OK)
        self.settle()
        self.successResultOf(stopping)
        self.assertEqual(len(self.broker.acked), 1)

    def test_administrators_see_what_is_popped(self) -> None:
        self.answer = defer.Deferred()
        self.send_all(b"1")
        consumer = self.popping()
        self.advance(1)
        info = consumer.running_info()
        held = info.mq_pop_table[MessageQueue("T", "broker-p", -1)]
        self.assertEqual((held.wait_ack_count, held.dropped), (1, False))
        self.assertNotIn(MessageQueue("T", "broker-p", -1), info.mq_table)
