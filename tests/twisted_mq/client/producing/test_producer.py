"""The producer against brokers in memory."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer

from tests.support.client_case import ClientCase
from tests.support.fake_broker import FakeBroker, Stored
from twisted_mq.client import (
    AccessDenied,
    BrokerGone,
    ClientOptionIllegal,
    ClientStateError,
    ForkedProcess,
    Message,
    MessageIllegal,
    MQClient,
    NameServerUnreachable,
    Producer,
    ProducerOptions,
    RemotingError,
    RocketMQError,
    SendFailed,
    SendRefused,
    SendStatus,
    TopicCreationRefused,
    TopicNotFound,
    TopicNotWritable,
)
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.recall_handle import RecallHandle
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.remoting.errors import RemotingTimeoutError

SEND = RequestCode.SEND_MESSAGE_V2


class ProducerCase(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.a = self.cluster.add_broker("broker-a", {"T": 2})

    def started(self, options: ProducerOptions | None = None, **rest: Any) -> Producer:
        producer = Producer(self.clock, "g", options=options, **{**self.client_arguments(), **rest})
        self.run_to_end(producer.start())
        return producer

    def stored(self, broker: FakeBroker) -> list[Stored]:
        return [one for queue in broker.queues.values() for one in queue]


class Sending(ProducerCase):
    def test_result_names_status_ids_queue_and_offset(self) -> None:
        producer = self.started()
        result = self.run_to_end(producer.send(Message("T", b"hello", tags="A", keys="k")))
        (stored,) = self.stored(self.a)
        self.assertEqual(stored.body, b"hello")
        self.assertEqual(stored.properties, {"TAGS": "A", "KEYS": "k", "UNIQ_KEY": result.msg_id, "WAIT": "true"})
        self.assertEqual(
            (result.status, result.queue.broker_name, result.queue_offset, result.offset_msg_id),
            (SendStatus.SEND_OK, "broker-a", 0, "7F00000100002A9F0000000000000000"),
        )

    def test_sends_go_round_the_queues(self) -> None:
        producer = self.started()
        for _ in range(6):
            self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual({key: len(queue) for key, queue in self.a.queues.items()}, {("T", 0): 3, ("T", 1): 3})

    def test_message_sent_twice_is_two_messages(self) -> None:
        producer = self.started()
        message = Message("T", b"x")
        ids = {self.run_to_end(producer.send(message)).msg_id for _ in range(2)}
        self.assertEqual(len(ids), 2)
        self.assertEqual(message.properties, {})

    def test_times_of_delivery_are_properties(self) -> None:
        producer = self.started()
        for given in ({"delay_time_seconds": 3}, {"delay_time_seconds": 0.9}, {"deliver_time": 1_800_000_000.25}):
            self.run_to_end(producer.send(Message("T", b"x", **given)))
        found = [{name: one.properties[name] for name in one.properties if name.startswith("TIMER")}
                 for one in self.stored(self.a)]  # fmt: skip
        expected = [{"TIMER_DELAY_SEC": "3"}, {"TIMER_DELAY_MS": "900"}, {"TIMER_DELIVER_MS": "1800000000250"}]
        self.assertCountEqual(found, expected)

    def test_waiting_message_is_recalled_at_the_broker_that_its_handle_names(self) -> None:
        producer = self.started()
        handle = RecallHandle("T", "broker-a", "1", "KEY").encode()
        self.assertEqual(self.run_to_end(producer.recall("T", handle)), "RECALLED")
        (header,) = self.a.headers(RequestCode.RECALL_MESSAGE)
        self.assertEqual(
            (header.producer_group, header.topic, header.recall_handle, header.bname), ("g", "T", handle, "broker-a")
        )
        self.run_to_failure(producer.recall("T", "no handle"), MessageIllegal)

    def test_given_queue_is_used(self) -> None:
        producer = self.started()
        queue = MessageQueue("T", "broker-a", 1)
        self.assertEqual(self.run_to_end(producer.send(Message("T", b"x"), queue)).queue, queue)

    def test_given_queue_of_a_topic_that_the_first_send_creates(self) -> None:
        self.cluster.add_route("TBW102", "broker-a", 8)
        queue = MessageQueue("New", "broker-a", 3)
        self.assertEqual(self.run_to_end(self.started().send(Message("New", b"x"), queue)).queue, queue)
        self.assertEqual([one.body for one in self.a.queues["New", 3]], [b"x"])

    def test_messages_of_one_key_go_to_one_queue_the_one_apache_chooses(self) -> None:
        producer = self.started()
        queues = self.run_to_end(producer.publish_queues("T"))
        for key in ("order-1", "order-2", "order-3"):
            result = self.run_to_end(producer.send_by_key(Message("T", b"x"), key))
            self.assertEqual(result.queue, queues[abs(java_hash(key)) % 2])

    def test_selector_gets_queues_message_and_argument(self) -> None:
        producer = self.started()
        seen: list[Any] = []

        def last(queues: Any, message: Message, argument: Any) -> MessageQueue:
            seen.append((len(queues), message.body, argument))
            return queues[-1]

        result = self.run_to_end(producer.send_by_key(Message("T", b"x"), {"any": 1}, last))
        self.assertEqual((seen, result.queue.queue_id), ([(2, b"x", {"any": 1})], 1))

    def test_batch_is_one_request_and_several_messages(self) -> None:
        producer = self.started()
        result = self.run_to_end(producer.send_batch(Message("T", b"%d" % one, tags="A") for one in range(3)))
        self.assertEqual([code for code, _ in self.a.asked if code != RequestCode.HEART_BEAT], [320])
        stored = self.stored(self.a)
        self.assertEqual([one.body for one in stored], [b"0", b"1", b"2"])
        self.assertEqual(",".join(one.properties["UNIQ_KEY"] for one in stored), result.msg_id)
        self.assertEqual(len(result.offset_msg_id.split(",")), 3)

    def test_one_way_reaches_the_broker(self) -> None:
        producer = self.started()
        self.assertIs(self.run_to_end(producer.send_one_way(Message("T", b"x"))), None)
        self.assertEqual([one.body for one in self.stored(self.a)], [b"x"])

    def test_large_body_travels_compressed(self) -> None:
        producer = self.started()
        self.run_to_end(producer.send(Message("T", b"x" * 5000)))
        (stored,) = self.stored(self.a)
        self.assertEqual((stored.sys_flag, stored.body), (0x301, b"x" * 5000))

    def test_new_topic_is_sent_to_by_the_default_topics_route(self) -> None:
        self.cluster.add_route("TBW102", "broker-a", 8)
        producer = self.started()
        result = self.run_to_end(producer.send(Message("New", b"x")))
        self.assertLess(result.queue.queue_id, 4)
        (header,) = self.a.headers(SEND)
        self.assertEqual((header.topic, header.default_topic, header.default_topic_queue_nums), ("New", "TBW102", 4))

    def test_many_sends_at_once_are_pipelined_over_one_connection(self) -> None:
        producer = self.started()
        results = [producer.send(Message("T", b"x")) for _ in range(100)]
        self.settle()
        self.assertEqual({self.successResultOf(one).status for one in results}, {SendStatus.SEND_OK})
        self.assertEqual(self.cluster.network.attempts.count(self.a.address), 1)

    def test_route_changes_reach_the_producer_within_half_a_minute(self) -> None:
        producer = self.started()
        self.run_to_end(producer.send(Message("T", b"x")))
        b = self.cluster.add_broker("broker-b", {"T": 2})
        self.advance(30, step=5)
        for _ in range(4):
            self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual(len(self.stored(b)), 2)


class FirstSends(ProducerCase):
    def test_many_at_once_ask_for_a_route_once(self) -> None:
        self.cluster.add_route("TBW102", "broker-a", 8)
        server = self.cluster.name_servers[0]
        for topic, asked in (("T", ["T"]), ("New", ["New", "TBW102"])):
            producer = self.started()
            server.asked.clear()
            sending = [producer.send(Message(topic, b"x")) for _ in range(3000)]
            self.advance(1)
            self.assertEqual({self.successResultOf(one).status for one in sending}, {SendStatus.SEND_OK})
            headers = server.headers(RequestCode.GET_ROUTEINFO_BY_TOPIC)
            self.assertEqual([one.topic for one in headers], asked)
            self.run_to_end(producer.stop())


class Retries(ProducerCase):
    def setUp(self) -> None:
        super().setUp()
        self.b = self.cluster.add_broker("broker-b", {"T": 2})

    def test_refusal_that_another_broker_may_not_give_is_tried_elsewhere(self) -> None:
        self.a.refuse[SEND] = BrokerError(ResponseCode.SYSTEM_BUSY, "busy")
        producer = self.started()
        brokers = {self.run_to_end(producer.send(Message("T", b"x"))).queue.broker_name for _ in range(4)}
        self.assertEqual(brokers, {"broker-b"})

    def test_unique_key_stays_over_attempts(self) -> None:
        producer = self.started()
        self.a.silent.add(SEND)
        self.b.silent.add(SEND)
        failing = producer.send(Message("T", b"x"), timeout_seconds=1)
        self.settle()
        self.advance(1)
        self.failureResultOf(failing, SendFailed)

    def test_other_refusals_are_final(self) -> None:
        for broker in (self.a, self.b):
            broker.refuse[SEND] = BrokerError(ResponseCode.MESSAGE_ILLEGAL, "too large")
        error = self.run_to_failure(self.started().send(Message("T", b"x")), BrokerError)
        self.assertEqual((error.response_code, error.remark), (ResponseCode.MESSAGE_ILLEGAL, "too large"))
        self.assertEqual(len(self.a.headers(SEND)) + len(self.b.headers(SEND)), 1)

    def test_dead_broker_is_passed_over(self) -> None:
        self.cluster.kill("broker-a")
        producer = self.started()
        for _ in range(3):
            self.assertEqual(self.run_to_end(producer.send(Message("T", b"x"))).queue.broker_name, "broker-b")

    def test_after_all_attempts_the_error_names_the_brokers_and_the_last_reason(self) -> None:
        for broker in (self.a, self.b):
            broker.refuse[SEND] = BrokerError(ResponseCode.SYSTEM_ERROR, "disk on fire")
        options = ProducerOptions(retry_times=2)
        error = self.run_to_failure(self.started(options).send(Message("T", b"x")), SendFailed, seconds=1)
        self.assertEqual(len(error.brokers), 3)
        self.assertEqual(set(error.brokers), {"broker-a", "broker-b"})
        self.assertIn("disk on fire", str(error))
        self.assertIsInstance(error.__cause__, BrokerError)

    def test_retries_end_with_the_time_of_the_send(self) -> None:
        for broker in (self.a, self.b):
            broker.silent.add(SEND)
        producer = self.started()
        sending = producer.send(Message("T", b"x"))
        self.settle()
        self.advance(2.9)
        self.assertNoResult(sending)
        self.advance(0.2)
        error = self.failureResultOf(sending, SendFailed).value
        self.assertEqual(len(error.brokers), 1)
        self.assertIsInstance(error.__cause__, RemotingTimeoutError)

    def test_given_queue_is_not_left_for_another(self) -> None:
        self.cluster.kill("broker-a")
        producer = self.started()
        sending = producer.send(Message("T", b"x"), MessageQueue("T", "broker-a", 0))
        self.run_to_failure(sending, RemotingError, seconds=3)
        self.assertEqual(self.stored(self.b), [])

    def test_given_queue_of_an_unknown_broker_is_named(self) -> None:
        queue = MessageQueue("T", "broker-x", 0)
        sending = self.started().send(Message("T", b"x"), queue)
        self.assertIn("broker-x", str(self.run_to_failure(sending, BrokerGone, seconds=3)))

    def test_a_send_goes_on_until_its_broker_is_back(self) -> None:
        producer = self.started()
        self.run_to_end(producer.publish_queues("T"))
        for given in (None, MessageQueue("T", "broker-a", 0)):
            self.cluster.kill("broker-a")
            self.cluster.kill("broker-b")
            sending = self.begin(producer.send(Message("T", b"x"), given))
            self.advance(2)
            self.assertNoResult(sending)
            self.cluster.network.listen(self.a.address, self.a.factory)
            self.assertEqual(self.run_to_end(sending, seconds=0.9).queue.broker_name, "broker-a")

    def test_a_first_send_goes_on_until_the_name_server_is_back(self) -> None:
        server = self.cluster.name_servers[0]
        self.cluster.network.close("10.0.0.1:9876")
        sending = self.begin(self.started().send(Message("T", b"x")))
        self.advance(2)
        self.assertNoResult(sending)
        self.cluster.network.listen("10.0.0.1:9876", server.factory)
        self.run_to_end(sending, seconds=0.9)

    def test_without_an_answer_in_time_the_error_counts_every_try(self) -> None:
        self.cluster.kill("broker-a")
        self.cluster.kill("broker-b")
        error = self.run_to_failure(self.started().send(Message("T", b"x")), SendFailed, seconds=3)
        self.assertGreater(len(error.brokers), 5)
        self.assertRegex(
            str(error), rf"^sent {len(error.brokers)} times in [23]\d{{3}} ms .* tried: broker-., broker-.; last"
        )

    def test_a_refusal_that_stays_is_given_up_after_three_tries(self) -> None:
        for broker in (self.a, self.b):
            broker.refuse[SEND] = BrokerError(ResponseCode.NO_PERMISSION, "closed")
        error = self.run_to_failure(self.started().send(Message("T", b"x")), SendFailed, seconds=0.25)
        self.assertEqual(len(error.brokers), 3)

    def test_failing_broker_is_left_out_for_a_while_when_asked_for(self) -> None:
        producer = self.started(ProducerOptions(send_latency_fault=True))
        self.a.refuse[SEND] = BrokerError(ResponseCode.SYSTEM_BUSY, "busy")
        for _ in range(6):
            self.run_to_end(producer.send(Message("T", b"x")))
        self.assertLessEqual(len(self.a.headers(SEND)), 1)

    def test_status_that_is_not_ok_is_returned_or_tried_again_as_asked(self) -> None:
        for again, sent in ((False, 1), (True, 3)):
            self.a.asked.clear()
            self.b.asked.clear()
            for broker in (self.a, self.b):
                broker.factory.traffic.processors[SEND] = lambda channel, request, broker=broker: attempt(
                    broker, request
                )

            def attempt(broker: FakeBroker, request: Any) -> Any:
                broker.asked.append((SEND, None))
                fields = {"msgId": "ID", "queueId": "0", "queueOffset": "0"}
                return request.answer(ResponseCode.FLUSH_SLAVE_TIMEOUT, ext_fields=fields)

            producer = self.started(ProducerOptions(retry_when_not_stored_ok=again))
            result = self.run_to_end(producer.send(Message("T", b"x")), seconds=0.25)
            self.assertIs(result.status, SendStatus.FLUSH_SLAVE_TIMEOUT)
            self.assertEqual(len(self.a.headers(SEND)) + len(self.b.headers(SEND)), sent)
            self.run_to_end(producer.stop())


class NoWay(ProducerCase):
    """Each cause of "no route" has its own error and next step."""

    def test_name_server_is_not_there(self) -> None:
        self.cluster.network.close("10.0.0.1:9876")
        error = self.run_to_failure(self.started().send(Message("T", b"x")), NameServerUnreachable, seconds=3)
        self.assertIn("10.0.0.1:9876: connect to 10.0.0.1:9876 failed", str(error))

    def test_topic_is_not_there(self) -> None:
        error = self.run_to_failure(self.started().send(Message("Nope", b"x")), TopicNotFound)
        self.assertEqual(error.topic, "Nope")

    def test_topic_may_not_be_written(self) -> None:
        self.cluster.add_route("ReadOnly", "broker-a", 4, perm=4)
        error = self.run_to_failure(self.started().send(Message("ReadOnly", b"x")), TopicNotWritable)
        self.assertIn("mqadmin topicRoute -n 10.0.0.1:9876 -t ReadOnly", str(error))

        self.assertIn("mqadmin updateTopicPerm -n 10.0.0.1:9876 -c DefaultCluster -t ReadOnly -p 6", str(error))

    def test_topic_whose_master_is_gone_names_the_broker(self) -> None:
        route = self.cluster.routes["T"]
        slave = attrs.evolve(route.broker_datas[0], broker_addrs={1: "10.0.1.1:10911"})
        self.cluster.routes["T"] = attrs.evolve(route, broker_datas=[slave])
        error = self.run_to_failure(self.started().send(Message("T", b"x")), BrokerGone, seconds=3)
        self.assertIn("broker broker-a has no master", str(error))
        self.assertIn("mqadmin clusterList -n 10.0.0.1:9876", str(error))

    def test_topic_that_no_broker_creates_says_so_with_the_brokers_remark(self) -> None:
        self.cluster.add_route("TBW102", "broker-a", 4)
        self.a.refuse[SEND] = BrokerError(ResponseCode.TOPIC_NOT_EXIST, "topic[New] not exist, apply first please!")
        error = self.run_to_failure(self.started().send(Message("New", b"x")), TopicCreationRefused, seconds=1)
        self.assertIn(
            "no broker there creates topics automatically (topic[New] not exist, apply first please!)", str(error)
        )
        self.assertIn("mqadmin updateTopic -n 10.0.0.1:9876 -c DefaultCluster -t New", str(error))

    def test_denied_access_says_so_with_the_name_servers_remark(self) -> None:
        server = self.cluster.name_servers[0]
        server.refuse[RequestCode.GET_ROUTEINFO_BY_TOPIC] = BrokerError(ResponseCode.NO_PERMISSION, "no such accessKey")
        error = self.run_to_failure(self.started().send(Message("T", b"x")), AccessDenied)
        self.assertEqual((error.topic, error.remark), ("T", "no such accessKey"))
        self.assertIn("no such accessKey", str(error))

    def test_refusal_names_the_code_and_the_next_step_and_keeps_the_remark(self) -> None:
        self.a.refuse[SEND] = BrokerError(ResponseCode.MESSAGE_ILLEGAL, "{no} way")
        error = self.run_to_failure(self.started().send(Message("T", b"x")), SendRefused)
        self.assertEqual((error.response_code, error.remark), (13, "{no} way"))
        said = "broker broker-a refused a message of topic T: MESSAGE_ILLEGAL (13): {no} way. "
        self.assertTrue(str(error).startswith(said), str(error))
        self.assertIn("mqadmin getBrokerConfig -n 10.0.0.1:9876", str(error))

    def test_every_error_is_of_one_tree(self) -> None:
        for error in (NameServerUnreachable, TopicNotFound, SendFailed, BrokerError, RemotingError, MessageIllegal):
            self.assertTrue(issubclass(error, RocketMQError), error)

    def test_topic_that_comes_later_is_found(self) -> None:
        producer = self.started()
        self.run_to_failure(producer.send(Message("Later", b"x")), TopicNotFound)
        self.cluster.add_route("Later", "broker-a", 1)
        self.run_to_end(producer.send(Message("Later", b"x")))

    def test_illegal_message_asks_nobody(self) -> None:
        producer = self.started()
        for sending in (producer.send, producer.send_one_way):
            self.run_to_failure(sending(Message("T", b"")), MessageIllegal)
            error = self.run_to_failure(sending("text"), MessageIllegal)
            self.assertIn("must be a Message, got 'text'", str(error))
        self.run_to_failure(producer.send_batch([]), MessageIllegal)
        self.run_to_failure(producer.send_batch([b"x"]), MessageIllegal)
        self.assertEqual(self.cluster.network.attempts, [])

    def test_bad_group_or_address_is_refused_when_made(self) -> None:
        for group, namesrv in (("a b", "h:1"), ("", "h:1"), ("g", "nonsense"), ("g", None)):
            self.assertRaises(ClientOptionIllegal, Producer, self.clock, group, namesrv)


class LifeCycle(ProducerCase):
    def test_call_before_start_or_after_stop_fails(self) -> None:
        producer = Producer(self.clock, "g", **self.client_arguments())
        self.run_to_failure(producer.send(Message("T", b"x")), ClientStateError)
        self.run_to_end(producer.start())
        self.run_to_end(producer.stop())
        self.run_to_failure(producer.send(Message("T", b"x")), ClientStateError)

    def test_stop_leaves_no_timer_and_no_connection_and_is_harmless_twice(self) -> None:
        producer = self.started()
        self.run_to_end(producer.send(Message("T", b"x")))
        self.run_to_end(producer.stop())
        self.run_to_end(producer.stop())
        self.assert_no_timers()
        self.assertEqual(list(self.a.factory.channels), [])

    def test_stop_before_start_is_harmless(self) -> None:
        self.run_to_end(Producer(self.clock, "g", **self.client_arguments()).stop())
        self.assert_no_timers()

    def test_start_twice_is_refused(self) -> None:
        producer = self.started()
        self.run_to_failure(producer.start(), ClientStateError)

    def test_producer_starts_again_after_stop(self) -> None:
        producer = self.started()
        self.run_to_end(producer.stop())
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("T", b"x")))
        self.run_to_end(producer.stop())
        self.assert_no_timers()

    def test_sends_in_flight_finish_before_stop_ends(self) -> None:
        producer = self.started()
        sending, stopping = producer.send(Message("T", b"x")), producer.stop()
        self.settle()
        self.assertIs(self.successResultOf(sending).status, SendStatus.SEND_OK)
        self.successResultOf(stopping)

    def test_send_that_does_not_finish_fails_with_a_typed_error(self) -> None:
        self.a.silent.add(SEND)
        producer = self.started()
        sending = producer.send(Message("T", b"x"), timeout_seconds=60)
        self.settle()
        stopping = producer.stop(finish_seconds=2)
        self.advance(2)
        self.assertIn("may have been sent", str(self.failureResultOf(sending, ClientStateError).value))
        self.successResultOf(stopping)
        self.assert_no_timers()

    def test_send_cancelled_by_its_user_leaves_no_timer(self) -> None:
        self.a.silent.add(SEND)
        producer = self.started()
        sending = producer.send(Message("T", b"x"))
        self.settle()
        sending.cancel()
        self.failureResultOf(sending, defer.CancelledError)
        self.run_to_end(producer.stop())
        self.assert_no_timers()

    def test_use_in_a_forked_process_is_refused(self) -> None:
        pids = [100]
        producer = self.started(get_pid=lambda: pids[0])
        pids[0] = 200
        for call in (
            lambda: producer.send(Message("T", b"x")),
            lambda: producer.send_batch([Message("T", b"x")]),
            lambda: producer.send_one_way(Message("T", b"x")),
            lambda: producer.start(),
        ):
            error = self.run_to_failure(call(), ForkedProcess)
            self.assertEqual((error.made_in, error.used_in), (100, 200))
        self.assertIn("after the fork", str(error))

    def test_two_producers_share_a_client_and_the_last_to_stop_closes_it(self) -> None:
        client = MQClient(self.clock, **self.client_arguments())
        one, two = Producer(self.clock, "one", client=client), Producer(self.clock, "two", client=client)
        for producer in (one, two):
            self.run_to_end(producer.start())
            self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual(self.cluster.network.attempts.count(self.a.address), 1)
        self.run_to_end(one.stop())
        self.run_to_end(two.send(Message("T", b"x")))
        self.run_to_end(two.stop())
        self.assert_no_timers()

    def test_one_group_twice_in_one_client_is_refused(self) -> None:
        client = MQClient(self.clock, **self.client_arguments())
        self.run_to_end(Producer(self.clock, "g", client=client).start())
        self.run_to_failure(Producer(self.clock, "g", client=client).start(), ClientStateError)

    def test_brokers_hear_of_the_producer_and_of_its_end(self) -> None:
        producer = self.started()
        self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual([one.group_name for one in self.a.heartbeats[0].producer_data_set], ["g"])
        self.run_to_end(producer.stop())
        (header,) = self.a.headers(RequestCode.UNREGISTER_CLIENT)
        self.assertEqual((header.producer_group, header.consumer_group), ("g", None))
