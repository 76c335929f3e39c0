"""The ordered consumer against brokers and a coordinator in memory."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer

from tests.support.ordered import OrderedCase, OrderedFakeBroker
from twisted_mq.client import ClientStateError, ConsumeOrderlyStatus, MessagesDeleted
from twisted_mq.client.ordered.errors import CoordinatorUnreachable, OrderedTopicUnknown
from twisted_mq.client.ordered.ordered_consumer import OrderedConsumer
from twisted_mq.client.ordered.ordered_options import OrderedConsumerOptions
from twisted_mq.coordination.interfaces import Delete
from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.ordering.paths import member_path
from twisted_mq.protocol.codes import RequestCode

OK, LATER = ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET


class ConsumerCase(OrderedCase):
    queues = 1

    def setUp(self) -> None:
        super().setUp()
        self.seen: list[str] = []
        self.answers: list[Any] = []
        """Results or errors of the listener, one after the other; SUCCESS after that."""

    def listener(self, messages: list[Any], context: Any) -> Any:
        self.seen += [message.body.decode() for message in messages]
        answer = self.answers.pop(0) if self.answers else OK
        if isinstance(answer, Exception):
            raise answer
        return answer

    def consumer(self, *, coordinator: Any = None, expression: str = "*", **options: Any) -> OrderedConsumer:
        consumer = OrderedConsumer(
            self.clock,
            "cg",
            coordinator=coordinator or self.coordinator(),
            options=OrderedConsumerOptions(**options),
            **self.client_arguments(),
        )
        consumer.subscribe("T", expression)
        consumer.listen(self.listener)
        self.addCleanup(lambda: self.run_to_end(self.stopping(consumer)))
        return consumer

    def started(self, **arguments: Any) -> OrderedConsumer:
        consumer = self.consumer(**arguments)
        self.run_to_end(consumer.start())
        return consumer

    def stopping(self, consumer: OrderedConsumer, finish_seconds: float = 0) -> defer.Deferred[None]:
        stopping = consumer.stop(finish_seconds)
        self.advance(finish_seconds + 0.1)
        return stopping

    def commits(self, broker: OrderedFakeBroker) -> list[int]:
        return [header.commit_offset for header in broker.headers(COMMIT)]


class Consuming(ConsumerCase):
    def test_messages_come_in_order_one_after_the_other(self) -> None:
        self.a.take(1, "1", "2", "3")
        self.head(self.a, 1)
        answers = self.answers = [defer.Deferred() for _ in range(2)]
        answers = list(answers)
        self.started()
        self.assertEqual(self.seen, ["1"])
        answers[0].callback(OK)
        self.settle()
        self.assertEqual(self.seen, ["1", "2"])
        answers[1].callback(OK)
        self.settle()
        self.assertEqual(self.seen, ["1", "2", "3"])
        self.a.take(1, "4")
        self.settle()
        self.assertEqual(self.seen, ["1", "2", "3", "4"])

    def test_refused_message_comes_again_and_holds_the_queue_back(self) -> None:
        self.a.take(1, "1", "2")
        self.head(self.a, 1)
        self.answers = [LATER, ValueError("no"), OK]
        self.started(suspend_queue_seconds=2.0)
        self.assertEqual(self.seen, ["1"])
        self.advance(2)
        self.assertEqual(self.seen, ["1", "1"])
        self.assertEqual(self.commits(self.a), [])
        self.advance(2)
        self.assertEqual(self.seen, ["1", "1", "1", "2"])
        self.flushLoggedErrors(ValueError)

    def test_listener_may_get_several_messages(self) -> None:
        self.a.take(1, "1", "2", "3")
        self.head(self.a, 1)
        calls: list[int] = []
        consumer = self.consumer(consume_message_batch_max_size=2)
        consumer.listen(lambda messages, context: (calls.append(len(messages)), OK)[1])
        self.run_to_end(consumer.start())
        self.assertEqual(calls, [2, 1])

    def test_tags_select(self) -> None:
        self.a.take(1, "1", properties="TAGS\x01A\x02")
        self.a.take(1, "2", properties="TAGS\x01B\x02")
        self.head(self.a, 1)
        self.started(expression="B")
        self.assertEqual(self.seen, ["2"])
        self.assertEqual(self.commits(self.a)[-1], 2)

    def test_what_is_of_earlier_terms_is_passed_over(self) -> None:
        self.a.take(1, "old")
        self.a.put("T", 0, b"of no term")
        self.a.take(3, "new")
        self.head(self.a, 3)
        self.started()
        self.assertEqual(self.seen, ["new"])

    def consumed_from_the_slave(self) -> OrderedFakeBroker:
        slave = self.slave("a")
        self.live("a", 0, 1)
        slave.take(1, "1", "2")
        self.head(self.a, 1)
        self.started()
        self.assertEqual(self.seen, [])
        self.advance(12)
        self.assertEqual(self.seen, ["1", "2"])
        self.assertEqual(self.commits(slave)[-1], 2)
        return slave

    def test_slave_is_consumed_while_the_master_refuses_connections(self) -> None:
        self.cluster.network.close(self.a.address)
        self.consumed_from_the_slave()

    def test_slave_is_consumed_while_the_master_does_not_answer(self) -> None:
        self.consumed_from_the_slave()  # the master holds pulls back for ever

    def test_master_is_consumed_again_when_it_can_be_reached_and_gets_the_offset(self) -> None:
        slave = self.consumed_from_the_slave()
        self.a.take(1, "1", "2", "3")
        slave.take(1, "3")
        self.advance(20)
        self.assertEqual(self.seen, ["1", "2", "3"])
        self.assertEqual(self.commits(self.a)[-1], 3)

    def test_messages_that_were_deleted_before_they_were_consumed_are_told(self) -> None:
        self.a.take(1, *map(str, range(6)))
        self.head(self.a, 1)
        self.a.offsets["cg", "T", 0] = 1
        self.a.min_offsets["T", 0] = 4
        consumer, told = self.consumer(), []
        consumer.on_deleted(lambda event: told.append((event, list(self.seen))))
        self.run_to_end(consumer.start())
        self.assertEqual(told, [(MessagesDeleted("cg", "T", 0, "a", 1, 1, 4), [])])
        self.assertEqual(self.seen, ["4", "5"])

    def test_group_without_an_offset_begins_at_what_is_there(self) -> None:
        self.a.take(1, *map(str, range(6)))
        self.head(self.a, 1)
        self.a.min_offsets["T", 0] = 4
        consumer, told = self.consumer(), []
        consumer.on_deleted(told.append)
        self.run_to_end(consumer.start())
        self.assertEqual((told, self.seen), ([], ["4", "5"]))

    def test_what_is_of_a_later_term_waits_for_the_lists(self) -> None:
        self.a.take(1, "1")
        self.a.take(3, "3")
        self.b.take(2, "2")
        self.put(Lists(2, ("b",), (Term("a", 1), Term("b", 2))))
        self.started()
        self.assertEqual(self.seen, ["1"])
        self.put(Lists(3, ("a",), (Term("b", 2), Term("a", 3))))
        self.settle()
        self.assertEqual(self.seen, ["1", "2"])
        self.put(Lists(3, ("a",), (Term("a", 3),)))
        self.settle()
        self.assertEqual(self.seen, ["1", "2", "3"])

    def test_end_of_the_queue_is_committed_at_once_and_else_each_tenth_of_a_second(self) -> None:
        self.a.take(1, "1", "2")
        self.head(self.a, 1)
        waits: defer.Deferred[Any] = defer.Deferred()
        self.answers = [OK, waits]
        self.started()
        self.assertEqual(self.commits(self.a), [])
        self.advance(0.1, 0.05)
        self.assertEqual(self.commits(self.a), [1])
        waits.callback(OK)
        self.settle()
        self.assertEqual(self.commits(self.a), [1, 2])
        self.assertEqual(self.a.terms_committed, ["1", "1"])

    def test_goes_on_from_the_committed_offset(self) -> None:
        self.a.take(1, "1", "2", "3")
        self.a.offsets["cg", "T", 0] = 2
        self.head(self.a, 1)
        self.started()
        self.assertEqual(self.seen, ["3"])

    def test_moved_offset_is_followed(self) -> None:
        self.a.take(1, "1", "2", "3")
        self.a.min_offsets["T", 0] = 1
        self.head(self.a, 1)
        with self.assertLogs("twisted_mq", "WARNING") as told:
            self.started()
        self.assertEqual(self.seen, ["2", "3"])
        expected = "messages skipped: topic=T queue=0 group=a epoch=1 firstOffset=0 count=1"
        self.assertEqual([one.getMessage() for one in told.records], [expected])


class Moving(ConsumerCase):
    def test_moves_on_with_the_list_after_the_open_call(self) -> None:
        self.a.take(1, "1")
        self.b.take(2, "2")
        self.put(Lists(2, ("b",), (Term("a", 1), Term("b", 2))))
        waits: defer.Deferred[Any] = defer.Deferred()
        self.answers = [waits]
        self.started()
        self.put(Lists(2, ("b",), (Term("b", 2),)))
        self.settle()
        self.assertEqual(self.seen, ["1"])
        waits.callback(OK)
        self.settle()
        self.assertEqual(self.seen, ["1", "2"])
        self.assertEqual(self.commits(self.a), [1])

    def test_slave_serves_while_the_master_is_gone_and_the_offset_moves_with_it(self) -> None:
        self.live("a", 0, 1)
        slave = self.slave("a")
        for broker in (self.a, slave):
            broker.take(1, "1", "2")
        self.put(Lists(1, (), (Term("a", 1),)))
        self.started()
        self.assertEqual(self.seen, ["1", "2"])
        self.cluster.network.close(self.a.address)
        self.run_to_end(self.operator.commit([Delete(member_path("a", 0))]))
        slave.take(1, "3")
        self.advance(1)
        self.assertEqual(self.seen, ["1", "2", "3"])
        self.assertEqual(self.commits(slave), [2, 3])

    def test_master_serves_again_when_it_is_back(self) -> None:
        self.live("a", 1)
        slave = self.slave("a")
        slave.take(1, "1")
        self.a.take(1, "1", "2")
        self.put(Lists(1, (), (Term("a", 1),)))
        self.started()
        self.advance(1)
        self.live("a", 0)
        self.advance(1)
        self.assertEqual((self.seen[0], self.seen[-1]), ("1", "2"))
        self.assertEqual(self.commits(self.a)[-1], 2)

    def test_pull_that_fails_is_tried_again(self) -> None:
        self.a.take(1, "1")
        self.head(self.a, 1)
        factory = self.cluster.network.servers[self.a.address]
        self.cluster.kill("a")
        self.started()
        self.advance(3)
        self.assertEqual(self.seen, [])
        self.cluster.network.listen(self.a.address, factory)
        self.advance(2)
        self.assertEqual(self.seen, ["1"])


class Leading(ConsumerCase):
    def test_standby_goes_on_where_the_first_committed(self) -> None:
        self.a.take(1, "1", "2")
        self.head(self.a, 1)
        first, second = self.started(), self.started()
        self.assertEqual(self.seen, ["1", "2"])
        self.successResultOf(self.stopping(first))
        self.a.take(1, "3")
        self.settle()
        self.assertEqual(self.seen, ["1", "2", "3"])
        self.assertEqual(second.consumed_offsets("T"), {next(iter(second.consumed_offsets("T"))): 3})

    def test_stop_waits_for_the_open_call_and_commits_it(self) -> None:
        self.a.take(1, "1", "2")
        self.head(self.a, 1)
        waits: defer.Deferred[Any] = defer.Deferred()
        self.answers = [waits]
        consumer = self.started()
        stopping = self.begin(consumer.stop(5.0))
        self.advance(1)
        self.assertNoResult(stopping)
        waits.callback(OK)
        self.settle()
        self.successResultOf(stopping)
        self.assertEqual((self.seen, self.commits(self.a)), (["1"], [1]))

    def test_stop_does_not_wait_for_ever(self) -> None:
        self.a.take(1, "1")
        self.head(self.a, 1)
        waits: defer.Deferred[Any] = defer.Deferred()
        self.answers = [waits]
        consumer = self.started()
        self.successResultOf(self.stopping(consumer, 2.0))
        self.assertTrue(waits.called)
        self.assertEqual(self.commits(self.a), [])
        timers = [str(call) for call in self.clock.getDelayedCalls()]
        self.assertEqual([timer for timer in timers if "ordered" in timer or "Consumption" in timer], [])

    def test_without_a_sure_session_nothing_is_handed_out_or_committed(self) -> None:
        self.head(self.a, 1)
        coordinator = self.coordinator()
        self.started(coordinator=coordinator)
        coordinator.link.cut(silently=True)
        self.advance(3.5)
        self.a.take(1, "1")
        self.advance(1)
        self.assertEqual(self.seen, [])
        coordinator.link.heal()
        self.advance(4)
        self.assertEqual(self.seen, ["1"])

    def test_result_of_a_call_that_outlives_the_session_is_not_committed(self) -> None:
        self.a.take(1, "1", "2")
        self.head(self.a, 1)
        coordinator = self.coordinator()
        waits: defer.Deferred[Any] = defer.Deferred()
        self.answers = [waits]
        self.started(coordinator=coordinator)
        self.started()
        coordinator.expire()
        self.settle()
        self.assertEqual(self.seen, ["1", "1", "2"])
        self.assertEqual(self.commits(self.a), [2])
        waits.callback(OK)
        self.advance(1)
        self.assertEqual((self.seen, self.commits(self.a)), (["1", "1", "2"], [2]))


class Starting(ConsumerCase):
    def test_topic_that_is_not_declared_fails_the_start(self) -> None:
        consumer = self.consumer()
        consumer.subscribe("Plain")
        self.run_to_failure(consumer.start(), OrderedTopicUnknown)

    def test_without_topic_or_listener_the_start_says_what_to_call(self) -> None:
        consumer = OrderedConsumer(self.clock, "cg", **self.client_arguments())
        self.assertIn("call subscribe()", str(self.run_to_failure(consumer.start(), ClientStateError)))
        consumer.subscribe("T")
        self.assertIn("call listen()", str(self.run_to_failure(consumer.start(), ClientStateError)))

    def test_coordinator_that_does_not_answer_fails_the_start(self) -> None:
        coordinator = self.coordinator()
        self.ensemble.stop()
        self.run_to_failure(self.consumer(coordinator=coordinator).start(), CoordinatorUnreachable)
        self.ensemble.start()
        self.advance(3)
