"""Sends that leave at once, as their topic's route and connections are there: whatever does not go well goes on as ever."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer

from tests.support.fake_broker import FakeBroker
from tests.twisted_mq.client.producing.test_producer import SEND, ProducerCase
from twisted_mq.client import ClientStateError, Message, Producer, ProducerOptions, SendStatus
from twisted_mq.protocol.bodies import BrokerData, MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, HeaderError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Channel
from twisted_mq.remoting.errors import RemotingConnectError

MESSAGE = Message("T", b"x")


class AtOnce(ProducerCase):
    def setUp(self) -> None:
        super().setUp()
        self.b = self.cluster.add_broker("broker-b", {"T": 2})

    def warm(self, options: ProducerOptions | None = None) -> Producer:
        """A producer that has sent to all queues."""
        producer = self.started(options)
        for _ in range(4):
            self.run_to_end(producer.send(MESSAGE))
        self.a.asked.clear()
        self.b.asked.clear()
        return producer

    def asked(self) -> int:
        return len(self.a.headers(SEND)) + len(self.b.headers(SEND))

    def assert_nothing_in_flight(self, producer: Producer, sent: int, failed: int, retries: int) -> None:
        self.assertEqual((producer.window.count, producer.window.bytes), (0, 0))
        self.assertEqual(attrs.astuple(producer.metrics), (sent, failed, retries, 0))

    def test_it_leaves_within_the_call(self) -> None:
        producer = self.warm()
        sending = producer.send(MESSAGE)
        self.assertEqual((producer.window.count, producer.metrics.in_flight), (1, 1))
        self.assertIs(self.run_to_end(sending).status, SendStatus.SEND_OK)
        self.assert_nothing_in_flight(producer, 5, 0, 0)

    def test_refused_by_one_broker_it_goes_to_another(self) -> None:
        producer = self.warm()
        self.a.refuse[SEND] = BrokerError(ResponseCode.SYSTEM_BUSY, "busy")
        brokers = [self.run_to_end(producer.send(MESSAGE)).queue.broker_name for _ in range(4)]
        self.assertEqual(brokers, ["broker-b"] * 4)
        self.assert_nothing_in_flight(producer, 8, 0, len(self.a.headers(SEND)))

    def test_a_refusal_that_is_final_is_its_end(self) -> None:
        producer = self.warm()
        for broker in (self.a, self.b):
            broker.refuse[SEND] = BrokerError(ResponseCode.MESSAGE_ILLEGAL, "too large")
        for queue in (None, MessageQueue("T", "broker-a", 0)):
            self.assertEqual(self.run_to_failure(producer.send(MESSAGE, queue), BrokerError).remark, "too large")
        self.assertEqual(self.asked(), 2)
        self.assert_nothing_in_flight(producer, 4, 2, 0)

    def test_a_broker_that_is_gone_is_passed_over(self) -> None:
        producer = self.warm()
        sending = [producer.send(MESSAGE) for _ in range(4)]
        self.cluster.kill("broker-a")
        self.assertEqual([self.run_to_end(one).queue.broker_name for one in sending], ["broker-b"] * 4)
        self.assert_nothing_in_flight(producer, 8, 0, 2)

    def test_it_goes_to_another_master_once_the_route_names_it(self) -> None:
        producer = self.warm()
        queue = MessageQueue("T", "broker-a", 0)
        other = FakeBroker(self.cluster.network, "broker-a", "10.0.1.9:10911")
        route = self.cluster.routes["T"]
        brokers = [BrokerData("DefaultCluster", "broker-a", {0: other.address}), *route.broker_datas[1:]]
        self.cluster.routes["T"] = attrs.evolve(route, broker_datas=brokers)
        self.run_to_end(producer.send(MESSAGE, queue))
        self.assertEqual((len(self.a.headers(SEND)), len(other.headers(SEND))), (1, 0))
        self.advance(31)
        self.run_to_end(producer.send(MESSAGE, queue))
        self.run_to_end(producer.send(MESSAGE, queue))
        self.assertEqual((len(self.a.headers(SEND)), len(other.headers(SEND))), (1, 2))

    def test_a_lost_connection_is_made_again_without_a_retry(self) -> None:
        producer = self.warm()
        for broker in (self.a, self.b):
            producer.client.remoting.disconnect(broker.address)
        self.settle()
        self.assertIs(self.run_to_end(producer.send(MESSAGE)).status, SendStatus.SEND_OK)
        self.assert_nothing_in_flight(producer, 5, 0, 0)

    def test_with_latency_fault_sends_go_round_the_queues(self) -> None:
        producer = self.warm(ProducerOptions(send_latency_fault=True))
        queues = {self.run_to_end(producer.send(MESSAGE)).queue for _ in range(4)}
        self.assertEqual(len(queues), 4)

    def test_a_queue_that_was_given_is_not_left_for_another(self) -> None:
        producer = self.warm()
        sending = producer.send(MESSAGE, MessageQueue("T", "broker-a", 0))
        self.cluster.kill("broker-a")
        self.run_to_failure(sending, RemotingConnectError, seconds=3)
        self.assert_nothing_in_flight(producer, 4, 1, producer.metrics.retries)
        self.assertGreater(producer.metrics.retries, 3)

    def test_stopped_while_it_rests_it_ends_with_its_timer(self) -> None:
        producer = self.warm()
        self.answer(ResponseCode.SYSTEM_BUSY)
        sending = producer.send(MESSAGE)
        self.settle()
        stopping = self.begin(producer.stop(finish_seconds=0.01))
        self.advance(0.25)
        self.successResultOf(stopping)
        self.failureResultOf(sending, ClientStateError)
        self.assert_no_timers()

    def test_cancelled_it_takes_no_room_any_more(self) -> None:
        producer = self.warm()
        self.a.silent.add(SEND)
        self.b.silent.add(SEND)
        sending = producer.send(MESSAGE)
        self.settle()
        sending.cancel()
        self.failureResultOf(sending, defer.CancelledError)
        self.assert_nothing_in_flight(producer, 4, 1, 0)

    def test_cancelled_on_its_way_to_another_broker_it_ends(self) -> None:
        producer = self.warm()
        self.a.silent.add(SEND)
        self.b.silent.add(SEND)
        sending = producer.send(MESSAGE)
        self.cluster.kill("broker-a")
        self.settle()
        sending.cancel()
        self.failureResultOf(sending, defer.CancelledError)
        self.assertEqual(producer.metrics.in_flight, 0)

    def test_stopped_meanwhile_it_may_have_been_sent(self) -> None:
        producer = self.warm()
        self.a.silent.add(SEND)
        self.b.silent.add(SEND)
        sending = producer.send(MESSAGE)
        stopping = self.begin(producer.stop(finish_seconds=1))
        self.advance(1.25)
        self.successResultOf(stopping)
        self.assertIn("the message may have been sent", str(self.failureResultOf(sending, ClientStateError).value))
        self.assert_no_timers()

    def test_stop_waits_for_it(self) -> None:
        producer = self.warm()
        sending, stopping = producer.send(MESSAGE), producer.stop()
        self.run_to_end(stopping)
        self.assertIs(self.successResultOf(sending).status, SendStatus.SEND_OK)

    def answer(self, code: int, **fields: str) -> None:
        """Have both brokers answer so."""

        def process(channel: Channel, request: RemotingCommand) -> Any:
            return request.answer(code, ext_fields=fields)

        for broker in (self.a, self.b):
            broker.factory.traffic.processors[SEND] = process

    def test_a_status_that_is_not_ok_is_returned_or_tried_again_as_asked(self) -> None:
        for again, retries in ((False, 0), (True, 2)):
            producer = self.warm(ProducerOptions(retry_when_not_stored_ok=again))
            sound = {broker: broker.factory.traffic.processors[SEND] for broker in (self.a, self.b)}
            self.answer(ResponseCode.FLUSH_SLAVE_TIMEOUT, msgId="ID", queueId="0", queueOffset="7")
            result = self.run_to_end(producer.send(MESSAGE), seconds=0.25)
            self.assertEqual((result.status, result.queue_offset), (SendStatus.FLUSH_SLAVE_TIMEOUT, 7))
            self.assert_nothing_in_flight(producer, 5, 0, retries)
            self.run_to_end(producer.stop())
            for broker, processor in sound.items():
                broker.factory.traffic.processors[SEND] = processor

    def test_an_answer_that_cannot_be_read_is_a_failure(self) -> None:
        producer = self.warm()
        self.answer(ResponseCode.SUCCESS, msgId="ID")
        self.run_to_failure(producer.send(MESSAGE), HeaderError)
        self.assert_nothing_in_flight(producer, 4, 1, 0)

    def test_many_leave_together_and_are_answered_together(self) -> None:
        producer = self.warm()
        sending = [producer.send(Message("T", b"%d" % number, tags="A")) for number in range(40)]
        results = [self.run_to_end(one) for one in sending]
        self.assertEqual({one.status for one in results}, {SendStatus.SEND_OK})
        self.assertEqual(len({one.msg_id for one in results}), 40)
        self.assertEqual(len({one.queue for one in results}), 4)
        stored = {header.properties for broker in (self.a, self.b) for header in broker.headers(SEND)}
        self.assertEqual(stored, {f"TAGS\x01A\x02UNIQ_KEY\x01{one.msg_id}\x02WAIT\x01true\x02" for one in results})
        self.assert_nothing_in_flight(producer, 44, 0, 0)

    def test_one_of_many_is_cancelled_before_it_leaves(self) -> None:
        producer = self.warm()
        sending = [producer.send(MESSAGE) for _ in range(4)]
        sending[2].cancel()
        self.failureResultOf(sending[2], defer.CancelledError)
        self.assertEqual(producer.window.count, 3)
        for one in (*sending[:2], sending[3]):
            self.run_to_end(one)
        self.assertEqual(self.asked(), 3)
        self.assert_nothing_in_flight(producer, 7, 1, 0)

    def test_a_callback_may_cancel_a_send_whose_answer_came_with_its_own(self) -> None:
        producer = self.warm()
        sending = [producer.send(MESSAGE) for _ in range(8)]
        sending[0].addCallback(lambda result: [one.cancel() for one in sending[1:]] and result)
        self.run_to_end(sending[0])
        ended = [one for one in sending[1:] if not one.called]
        self.assertEqual(ended, [])
        for one in sending[1:]:
            one.addErrback(lambda reason: reason.trap(defer.CancelledError) and None)
        self.settle()
        self.assertEqual((producer.window.count, producer.window.bytes, producer.metrics.in_flight), (0, 0, 0))

    def test_each_has_its_own_time(self) -> None:
        producer = self.warm()
        self.a.silent.add(SEND)
        self.b.silent.add(SEND)
        sending = [producer.send(MESSAGE, timeout_seconds=seconds) for seconds in (2, 1, 3)]
        self.advance(1.5)
        self.assertEqual([one.called for one in sending], [False, True, False])
        self.advance(1)
        self.assertEqual([one.called for one in sending], [True, True, False])
        self.advance(1)
        for one in sending:
            self.failureResultOf(one)
        self.assert_nothing_in_flight(producer, 4, 3, producer.metrics.retries)

    def test_more_than_a_connection_may_await_are_sent_one_by_one(self) -> None:
        producer = self.warm()
        for channel in producer.client.remoting._channels.values():
            channel._traffic.max_awaited = 1
        sending = [producer.send(MESSAGE) for _ in range(6)]
        results = [self.run_to_end(one, seconds=2) for one in sending]
        self.assertEqual({one.status for one in results}, {SendStatus.SEND_OK})
        self.assertEqual((producer.window.count, producer.metrics.in_flight, producer.metrics.sent), (0, 0, 10))
