"""The ordered producer against brokers that keep the rules, and a coordinator, in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from twisted.internet import defer

from tests.support.ordered import OrderedCase, OrderedFakeBroker
from twisted_mq.client import ClientStateError, Message, MessageIllegal, SendResult
from twisted_mq.client.ordered.errors import (
    CoordinatorUnknown,
    CoordinatorUnreachable,
    NoHead,
    NotLeader,
    OrderedTopicUnknown,
    QueueBlocked,
    QueueUnknown,
    SendGivenUp,
    SendTimedOut,
    TooMuchWaits,
)
from twisted_mq.client.ordered.ordered_options import OrderedOptions
from twisted_mq.client.ordered.ordered_producer import OrderedProducer
from twisted_mq.client.ordered.pipeline import Window
from twisted_mq.coordination.interfaces import Delete, NotAllowed
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.ordering.documents import UnreachedHead, decode_unreached
from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.ordering.paths import topic_path, unit_path, unreached_path
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.messages.order_mark import OrderMark
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header


def late_answer(broker: OrderedFakeBroker) -> Callable[[], None]:
    """Have a broker acknowledge the next send when the result is called."""
    due: defer.Deferred[RemotingCommand] = defer.Deferred()
    requests: list[RemotingCommand] = []
    note = broker.note

    def noted(request: RemotingCommand, header: Any) -> Any:
        requests.append(request)
        return note(request, header)

    broker.note = noted  # type: ignore[method-assign]
    broker.fail_next.append(due)
    fields = encode_header(SendMessageResponseHeader(msg_id="late", queue_id=0, queue_offset=0))
    return lambda: due.callback(requests[0].answer(ext_fields=fields))


class ProducerCase(OrderedCase):
    def producer(self, *, group: str = "g", coordinator: Any = None, **options: Any) -> OrderedProducer:
        producer = OrderedProducer(
            self.clock,
            group,
            coordinator=coordinator or self.coordinator(),
            options=OrderedOptions(**options),
            **self.client_arguments(),
        )
        self.run_to_end(producer.start())
        self.addCleanup(lambda: self.run_to_end(self.stopping(producer)))
        return producer

    def stopping(self, producer: OrderedProducer, finish_seconds: float = 0) -> defer.Deferred[None]:
        stopping = producer.stop(finish_seconds)
        self.advance(finish_seconds + 0.1)
        return stopping

    def send(self, producer: OrderedProducer, *bodies: str, **more: Any) -> list[defer.Deferred[SendResult]]:
        """Send each body to queue 0."""
        sends = [producer.send(Message("T", body.encode()), queue=0, **more) for body in bodies]
        self.settle()
        return sends


class HeadsThatAreNotReached(ProducerCase):
    session_seconds = 6.0

    def report(self) -> Any:
        node = self.run_to_end(self.operator.read(unreached_path("T", "0")))
        return None if node is None else decode_unreached("/", node.data)

    def wait(self, producer: OrderedProducer) -> None:
        """Have a send that is not answered before the test ends."""
        for send in self.send(producer, "waits"):
            send.addErrback(lambda reason: reason.trap(ClientStateError))

    def test_head_that_refuses_connections_is_reported_and_the_next_one_gets_all(self) -> None:
        self.head(self.a, 1)
        producer = self.producer(send_timeout_seconds=60)
        sends = self.send(producer, "1")
        self.successResultOf(sends[0])
        self.cluster.network.close(self.a.address)
        sends = self.send(producer, "2", "3")
        self.advance(self.session_seconds / 2 - 0.1)
        self.assertIsNone(self.report())
        self.advance(self.session_seconds / 2 + 1)
        self.assertEqual(self.report(), UnreachedHead("a", 1, producer.client.client_id))
        self.head(self.b, 2, before=(Term("a", 1),))
        self.advance(2)
        for send in sends:
            self.successResultOf(send)
        sends = self.send(producer, "4")
        self.advance(4)
        self.successResultOf(sends[0])

    def test_head_that_never_answers_is_reported(self) -> None:
        self.head(self.a, 1)
        producer = self.producer(send_timeout_seconds=60)
        self.a.fail_next = [defer.Deferred() for _ in range(100)]
        self.wait(producer)
        self.advance(self.session_seconds)
        self.assertEqual(self.report(), UnreachedHead("a", 1, producer.client.client_id))

    def test_report_is_withdrawn_when_the_head_answers_again(self) -> None:
        self.head(self.a, 1)
        producer = self.producer(send_timeout_seconds=60, answer_timeout_seconds=2)
        self.a.fail_next = [defer.Deferred() for _ in range(3)]
        sends = self.send(producer, "1")
        self.advance(self.session_seconds)
        self.assertIsNotNone(self.report())
        self.advance(10)
        self.successResultOf(sends[0])
        for _ in range(4):
            self.send(producer, "more")
            self.advance(1)
        self.assertIsNone(self.report())

    def test_head_that_answers_is_never_reported(self) -> None:
        self.head(self.a, 1)
        producer = self.producer(send_timeout_seconds=60)
        self.a.fail_next = [BrokerError(ResponseCode.SYSTEM_BUSY, "busy") for _ in range(100)]
        self.wait(producer)
        self.advance(30)
        self.assertIsNone(self.report())

    def test_producer_that_reaches_nobody_reports_less_and_less(self) -> None:
        reports: list[Any] = []
        for broker in (self.a, self.b):
            broker.fail_next = [defer.Deferred() for _ in range(1000)]
        self.head(self.a, 1)
        self.wait(self.producer(send_timeout_seconds=1000))
        epoch, at = 1, []
        for second in range(200):
            self.advance(1)
            report = self.report()
            if report is not None and report not in reports:
                reports.append(report)
                at.append(second)
                epoch += 1
                self.head((self.a, self.b)[epoch % 2 == 0], epoch)
        pauses = [later - earlier for earlier, later in itertools.pairwise(at)]
        self.assertGreater(len(pauses), 3)
        self.assertEqual(pauses, sorted(pauses))
        self.assertGreater(pauses[-1], 4 * pauses[0])


class Sending(ProducerCase):
    def test_messages_go_to_the_head_in_order_and_say_their_place(self) -> None:
        self.head(self.a, 1)
        sends = self.send(self.producer(), "1", "2", "3")
        results = [self.successResultOf(one) for one in sends]
        self.assertEqual([(one.queue.broker_name, one.queue_offset) for one in results], [("a", 0), ("a", 1), ("a", 2)])
        self.assertEqual(self.a.bodies("T", 0), ["1", "2", "3"])
        self.assertEqual(self.a.marks, [OrderMark(1, 0, 0, 1, 1), OrderMark(1, 0, 0, 1, 2), OrderMark(1, 0, 0, 1, 3)])

    def test_a_key_has_always_the_same_queue(self) -> None:
        for queue in (0, 1):
            self.head(self.a, 1, queue)
        producer = self.producer()
        for key in ("a", "b", "a", "b"):
            self.run_to_end(producer.send(Message("T", key.encode()), key=key))
        self.assertEqual((self.a.bodies("T", 0), self.a.bodies("T", 1)), (["b", "b"], ["a", "a"]))

    def test_queue_must_be_one_of_the_topic(self) -> None:
        producer = self.producer()
        error = self.run_to_failure(producer.send(Message("T", b"x"), queue=2), QueueUnknown)
        self.assertEqual(str(error), "topic T has the ordered queues 0 to 1, not 2")
        error = self.run_to_failure(producer.send(Message("T", b"x")), QueueUnknown)
        self.assertEqual(str(error), "topic T has 2 ordered queues: choose one with queue= or key=")

    def test_what_can_not_be_ordered_is_refused_before_it_leaves(self) -> None:
        producer = self.producer()
        for message in (
            Message("T", b"x", delay_time_level=1),
            Message("T", b"x", delay_time_seconds=1),
            Message("T", b"x", properties={"ORDERED": "1:0"}),
            Message("T", b""),
        ):
            self.run_to_failure(producer.send(message, queue=0), MessageIllegal)

    def test_topic_that_is_not_declared_names_the_command(self) -> None:
        error = self.run_to_failure(self.producer().send(Message("Plain", b"x")), OrderedTopicUnknown)
        self.assertIn("mq order create Plain --queues N --groups a,b", str(error))

    def test_window_bounds_what_is_on_its_way(self) -> None:
        self.head(self.a, 1)
        producer = self.producer(window=Window(messages=2))
        self.run_to_end(producer.lead("T", 0))
        self.a.silent.add(RequestCode.SEND_MESSAGE_V2)
        sends = self.send(producer, "1", "2", "3", timeout_seconds=1.0)
        self.assertEqual(len(self.a.asked), 2 + len(self.a.heartbeats))
        self.advance(1)
        self.failureResultOf(sends[0], SendTimedOut)
        for one in sends[1:]:
            self.failureResultOf(one, SendGivenUp)

    def test_more_than_may_wait_is_refused_at_once(self) -> None:
        producer = self.producer(waiting_messages=2)
        sends = self.send(producer, "1", "2", "3")
        error = self.failureResultOf(sends[2], TooMuchWaits).value
        self.assertIn("2 messages of 2 bytes are already waiting", str(error))
        self.head(self.a, 1)
        for one in sends[:2]:
            self.successResultOf(one)

    def test_sends_before_the_topic_is_known_keep_their_order(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        sends: list[Any] = []
        first = producer.send(Message("T", b"1"), queue=7)
        first.addErrback(lambda _: sends.append(producer.send(Message("T", b"3"), queue=0)))
        sends.append(producer.send(Message("T", b"2"), queue=0))
        self.settle()
        self.assertEqual(self.a.bodies("T", 0), ["2", "3"])


class Failover(ProducerCase):
    def test_what_was_not_acknowledged_goes_to_the_next_head_in_order(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        for send in self.send(producer, "1", "2"):
            self.successResultOf(send)
        self.a.silent.add(RequestCode.SEND_MESSAGE_V2)
        sends = self.send(producer, "3", "4", "5")
        self.cluster.kill("a")
        self.settle()
        self.head(self.b, 2, before=(Term("a", 1),))
        self.assertEqual(self.b.bodies("T", 0), ["3", "4", "5"])
        self.assertEqual(self.b.marks[-1], OrderMark(2, 0, 0, 3, 5))
        for send in sends:
            self.successResultOf(send)

    def test_acknowledgement_of_a_former_head_is_not_taken_once_a_later_one_was_seen(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        late, present = late_answer(self.a), late_answer(self.b)
        send = self.send(producer, "1")[0]
        self.head(self.b, 2, before=(Term("a", 1),))
        self.assertEqual((self.a.marks[-1].epoch, self.b.marks[-1].epoch), (1, 2))
        late()
        self.settle()
        self.assertNoResult(send)
        present()
        self.settle()
        self.assertEqual(self.successResultOf(send).queue.broker_name, "b")

    def test_refusal_of_a_former_head_is_waited_out(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        self.successResultOf(self.send(producer, "1")[0])
        del self.a.heads[0]
        sends = self.send(producer, "2", "3")
        self.advance(3)
        for send in sends:
            self.assertNoResult(send)
        self.head(self.b, 2, before=(Term("a", 1),))
        self.assertEqual([self.successResultOf(one).queue.broker_name for one in sends], ["b", "b"])
        self.assertEqual(self.b.bodies("T", 0), ["2", "3"])

    def test_head_that_does_not_know_it_yet_is_asked_again(self) -> None:
        self.head(self.a, 1)
        del self.a.heads[0]
        (send,) = self.send(self.producer(), "1")
        self.a.heads[0] = 1
        self.advance(0.25)
        self.successResultOf(send)

    def test_nothing_overtakes_a_refused_message(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        self.run_to_end(producer.lead("T", 0))
        self.a.fail_next = [BrokerError(ResponseCode.SYSTEM_BUSY, "too busy")]
        sends = self.send(producer, "1", "2", "3")
        self.advance(0.25)
        for send in sends:
            self.successResultOf(send)
        self.assertEqual(self.a.bodies("T", 0), ["1", "2", "3"])

    def test_numbers_begin_anew_under_no_term_that_was_led_before(self) -> None:
        """A candidate's node that could not be removed while the coordinator was away is found again, and is not a new one."""
        self.head(self.a, 1)
        producer = self.producer()
        self.run_to_end(producer.lead("T", 0))
        self.send(producer, "1")
        self.advance(0.25)
        (unit,) = producer._units.values()
        unit._leads(self.a.marks[0].leader)
        (send,) = self.send(producer, "2")
        self.advance(3)
        self.successResultOf(send)
        self.assertEqual([mark.sequence for mark in self.a.marks], [1, 1])
        self.assertGreater(self.a.marks[1].leader, self.a.marks[0].leader)

    def test_message_that_only_the_master_has_is_sent_again(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        self.run_to_end(producer.lead("T", 0))
        self.a.fail_next = [ResponseCode.FLUSH_SLAVE_TIMEOUT]
        (send,) = self.send(producer, "1")
        self.assertNoResult(send)
        self.advance(0.25)
        self.successResultOf(send)
        self.assertEqual(len(self.a.marks), 2)

    def test_lost_answers_do_not_store_twice(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        self.successResultOf(self.send(producer, "1")[0])
        sends = [producer.send(Message("T", body), queue=0) for body in (b"2", b"3")]
        while len(self.a.bodies("T", 0)) < 3:
            self.clock.advance(0)
        factory = self.cluster.network.servers[self.a.address]
        self.cluster.network.close(self.a.address)
        self.cluster.network.listen(self.a.address, factory)
        self.advance(1)
        for send in sends:
            self.successResultOf(send)
        self.assertEqual(self.a.bodies("T", 0), ["1", "2", "3"])

    def test_change_of_the_consume_list_alone_sends_nothing_again(self) -> None:
        self.head(self.b, 2, before=(Term("a", 1),))
        producer = self.producer()
        self.run_to_end(producer.lead("T", 0))
        self.b.silent.add(RequestCode.SEND_MESSAGE_V2)
        (send,) = self.send(producer, "1")
        asked = len(self.b.asked)
        self.put(Lists(2, ("b",), (Term("b", 2),)))
        self.assertEqual(len(self.b.asked), asked)
        self.successResultOf(self.stopping(producer))
        self.failureResultOf(send, ClientStateError)


class Failing(ProducerCase):
    def test_message_that_is_refused_for_good_takes_those_behind_it_along(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        self.run_to_end(producer.lead("T", 0))
        refusal = BrokerError(ResponseCode.MESSAGE_ILLEGAL, "no")
        self.a.fail_next = [None, refusal]
        first, second, third = self.send(producer, "1", "2", "3")
        self.failureResultOf(second, BrokerError)
        given_up = self.failureResultOf(third, SendGivenUp).value
        self.assertEqual(str(given_up.__cause__), "CODE: 13 DESC: no")
        (fourth,) = self.send(producer, "4")
        self.advance(1)
        self.successResultOf(fourth)
        self.successResultOf(first)
        self.assertEqual(self.a.bodies("T", 0), ["1", "4"])
        place = (self.a.marks[-1].base, self.a.marks[-1].sequence)
        self.assertEqual((self.a.marks[-1].leader > self.a.marks[0].leader, place), (True, (1, 1)))

    def test_without_a_head_the_error_says_why_group_by_group(self) -> None:
        self.live("a", 0)
        self.live("b", 0, 1)
        self.put(Lists(3, (), (Term("b", 3),)))
        sends = self.send(self.producer(), "1", "2", timeout_seconds=5.0)
        self.advance(5)
        error = self.failureResultOf(sends[0], NoHead).value
        self.assertEqual(
            error.reasons,
            (
                "a: its slave (brokerId 1) is not connected to the coordinator",
                "b still has messages of epoch 3, it joins again after all its consumer groups have consumed them",
            ),
        )
        self.assertIn("no broker group accepted sends of topic T queue 0 within 5 s; it was not stored", str(error))
        self.failureResultOf(sends[1], SendGivenUp)

    def test_send_waits_for_a_head(self) -> None:
        (send,) = self.send(self.producer(), "1")
        self.advance(20)
        self.head(self.a, 1)
        self.successResultOf(send)

    def test_head_that_does_not_answer_is_a_timeout(self) -> None:
        self.head(self.a, 1)
        self.a.silent.add(RequestCode.SEND_MESSAGE_V2)
        (send,) = self.send(self.producer(), "1", timeout_seconds=8.0)
        self.advance(8)
        error = self.failureResultOf(send, SendTimedOut).value
        self.assertIn("no answer from 10.0.1.1:10911 within 6 s", str(error))

    def test_lists_without_sense_block_and_say_what_is_wrong(self) -> None:
        self.put_raw(b'{"epoch":1,"send":["a","a"],"consume":[]}')
        (send,) = self.send(self.producer(), "1", timeout_seconds=2.0)
        self.advance(2)
        error = self.failureResultOf(send, QueueBlocked).value
        self.assertIn("topic T queue 0 is blocked", str(error))
        self.assertIn("has a group twice", str(error))

    def test_topic_that_is_deleted_fails_what_waits(self) -> None:
        (send,) = self.send(self.producer(), "1")
        paths = [unit_path("T", "0"), unit_path("T", "1"), topic_path("T")]
        self.run_to_end(self.operator.commit([Delete(path) for path in paths]))
        self.failureResultOf(send, OrderedTopicUnknown)

    def test_stop_lets_sends_finish_and_fails_the_rest(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        self.run_to_end(producer.lead("T", 0))
        (first,) = self.send(producer, "1")
        del self.a.heads[0]
        (second,) = self.send(producer, "2")
        self.successResultOf(self.stopping(producer, 2.0))
        self.successResultOf(first)
        self.failureResultOf(second, ClientStateError)
        self.run_to_failure(producer.send(Message("T", b"3"), queue=0), ClientStateError)
        timers = [str(call) for call in self.clock.getDelayedCalls()]
        self.assertEqual([timer for timer in timers if "QueueSender" in timer], [])


class Leading(ProducerCase):
    def test_one_leads_and_the_other_fails_at_once(self) -> None:
        self.head(self.a, 1)
        first, second = self.producer(), self.producer()
        self.run_to_end(first.lead("T", 0))
        self.assertTrue(first.leads("T", 0))
        waiting = self.begin(second.lead("T", 0))
        self.assertNoResult(waiting)
        error = self.failureResultOf(self.send(second, "x")[0], NotLeader).value
        self.assertIn("this producer of group g does not lead topic T queue 0: n-", str(error))
        self.successResultOf(self.stopping(first))
        self.successResultOf(waiting)
        self.successResultOf(self.send(second, "1")[0])
        self.assertGreater(self.a.marks[-1].leader, 0)

    def test_standby_sends_what_waits_when_its_turn_comes(self) -> None:
        self.head(self.a, 1)
        first, second = self.producer(), self.producer(stand_by=True)
        self.successResultOf(self.send(first, "1")[0])
        (waiting,) = self.send(second, "2")
        self.assertNoResult(waiting)
        self.successResultOf(self.stopping(first))
        self.successResultOf(waiting)
        self.assertEqual(self.a.bodies("T", 0), ["1", "2"])

    def test_standby_times_out_as_no_leader(self) -> None:
        self.head(self.a, 1)
        first, second = self.producer(), self.producer(stand_by=True)
        self.run_to_end(first.lead("T", 0))
        (waiting,) = self.send(second, "2", timeout_seconds=3.0)
        self.advance(3)
        self.failureResultOf(waiting, NotLeader)

    def test_listeners_are_told_of_each_turn(self) -> None:
        coordinator = self.coordinator()
        producer = self.producer(coordinator=coordinator)
        told: list[Any] = []
        producer.on_lead(lambda *state: told.append(state))
        self.run_to_end(producer.lead("T"))
        self.assertEqual(told, [("T", "0", True), ("T", "1", True)])
        coordinator.expire()
        self.settle()
        self.assertEqual(told[2:4], [("T", "0", False), ("T", "1", False)])
        self.advance(3)
        self.assertEqual(told[4:], [("T", "0", True), ("T", "1", True)])

    def test_lost_session_fails_what_waits(self) -> None:
        coordinator = self.coordinator()
        producer = self.producer(coordinator=coordinator)
        (send,) = self.send(producer, "1")
        coordinator.expire()
        self.settle()
        error = self.failureResultOf(send, NotLeader).value
        self.assertIn("its session with the coordinator was lost", str(error))

    def test_without_a_sure_session_nothing_is_sent(self) -> None:
        self.head(self.a, 1)
        coordinator = self.coordinator()
        producer = self.producer(coordinator=coordinator)
        self.successResultOf(self.send(producer, "1")[0])
        coordinator.link.cut(silently=True)
        self.advance(3.5)
        self.assertFalse(producer.leads("T", 0))
        (send,) = self.send(producer, "2", timeout_seconds=1.0)
        self.advance(1)
        self.failureResultOf(send, CoordinatorUnreachable)
        self.assertEqual(self.a.bodies("T", 0), ["1"])
        coordinator.link.heal()
        (send,) = self.send(producer, "3")
        self.advance(4)
        self.successResultOf(send)
        self.assertEqual(self.a.bodies("T", 0), ["1", "3"])

    def test_new_leader_term_sends_again_what_was_not_acknowledged(self) -> None:
        self.head(self.a, 1)
        coordinator = self.coordinator()
        producer = self.producer(coordinator=coordinator, stand_by=True)
        self.successResultOf(self.send(producer, "1")[0])
        self.a.silent.add(RequestCode.SEND_MESSAGE_V2)
        (send,) = self.send(producer, "2")
        coordinator.expire()
        self.a.silent.clear()
        self.advance(3)
        self.successResultOf(send)
        self.assertEqual(self.a.marks[-1], OrderMark(1, 0, self.a.marks[-1].leader, 1, 1))
        self.assertGreater(self.a.marks[-1].leader, self.a.marks[0].leader)

    def test_broker_that_knows_a_later_leader_makes_it_stand_again(self) -> None:
        self.head(self.a, 1)
        producer = self.producer()
        self.successResultOf(self.send(producer, "1")[0])
        self.a.leaders[0, 1] = 1
        (send,) = self.send(producer, "2")
        self.failureResultOf(send, NotLeader)
        self.failureResultOf(self.send(producer, "x")[0], NotLeader)
        turn = self.begin(producer.lead("T", 0))
        self.advance(1)
        self.successResultOf(turn)
        self.successResultOf(self.send(producer, "3")[0])
        self.assertGreater(self.a.marks[-1].leader, 1)

    def test_what_keeps_it_from_standing_fails_turns_and_sends(self) -> None:
        coordinator = self.coordinator()
        self.patch(coordinator, "commit", lambda operations: defer.fail(NotAllowed("no rights below /leaders")))
        producer = self.producer(coordinator=coordinator)
        turn = producer.lead("T", 0)
        (send,) = self.send(producer, "1")
        for failed in (turn, send):
            self.assertIn("no rights below /leaders", str(self.failureResultOf(failed, CoordinatorUnreachable).value))


class Coordinator(ProducerCase):
    def unmade(self, **arguments: Any) -> OrderedProducer:
        made: list[CoordinatorSettings] = []

        def connect(settings: CoordinatorSettings) -> Any:
            made.append(settings)
            return self.ensemble.coordinator()

        self.made = made
        producer = OrderedProducer(
            self.clock, "g", connect_coordinator=connect, **{**self.client_arguments(), **arguments}
        )
        self.run_to_end(producer.start())
        self.addCleanup(lambda: self.run_to_end(self.stopping(producer)))
        return producer

    def test_address_is_connected_once_and_its_session_ends_with_the_producer(self) -> None:
        self.head(self.a, 1)
        producer = self.unmade(coordinator="10.1.1.1:2181/mq")
        sends = self.send(producer, "1", "2")
        for send in sends:
            self.successResultOf(send)
        self.assertEqual([str(one.address) for one in self.made], ["10.1.1.1:2181/mq"])
        self.successResultOf(self.stopping(producer))
        self.assertEqual(self.run_to_end(self.operator.children("/leaders/T/0/producers/g")), ())

    def test_brokers_of_the_topic_are_asked_for_the_address(self) -> None:
        self.head(self.a, 1)
        self.b.config = "brokerName=b\norderCoordinator=10.1.1.1:2181/mq\n"
        self.successResultOf(self.send(self.unmade(), "1")[0])
        self.assertEqual([str(one.address) for one in self.made], ["10.1.1.1:2181/mq"])

    def test_without_an_address_anywhere_the_error_names_the_argument(self) -> None:
        error = self.failureResultOf(self.send(self.unmade(), "1")[0], CoordinatorUnknown).value
        self.assertIn('coordinator="HOST:PORT,HOST:PORT/chroot"', str(error))

    def test_coordinator_that_does_not_answer_is_a_typed_error(self) -> None:
        self.ensemble.stop()
        (send,) = self.send(self.unmade(coordinator="10.1.1.1:2181"), "1")
        self.advance(11)
        self.failureResultOf(send, CoordinatorUnreachable)
        self.ensemble.start()

    def test_address_without_sense_is_a_typed_error(self) -> None:
        (send,) = self.send(self.unmade(coordinator="10.1.1.1:port"), "1")
        error = self.failureResultOf(send, CoordinatorUnreachable).value
        self.assertIn("'10.1.1.1:port' is not HOST:PORT", str(error))
