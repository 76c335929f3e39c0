"""Push consumers against brokers in memory: joining, pulling, committing, sharing, leaving."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import defer

from tests.support.client_case import ClientCase
from tests.support.fake_broker import FakeBroker
from twisted_mq.client import (
    ClientOptionIllegal,
    ClientStateError,
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    FlowLimits,
    ForkedProcess,
    Message,
    MessageModel,
    MQClient,
    Producer,
    PushConsumer,
)
from twisted_mq.protocol.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerStatusBody,
    MessageQueue,
    ResetOffsetBody,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PullSysFlag
from twisted_mq.protocol.headers import (
    ConsumerSendMsgBackRequestHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header

FIRST = ConsumeFromWhere.FIRST_OFFSET
OK, LATER = ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER


def queue(queue_id: int, topic: str = "T", broker: str = "broker-a") -> MessageQueue:
    return MessageQueue(topic, broker, queue_id)


def sent_to_master(request: RemotingCommand, header: PullMessageRequestHeader) -> RemotingCommand:
    """Return the answer of a slave with a living master."""
    there = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=header.queue_offset, min_offset=0, max_offset=header.queue_offset
    )
    return request.answer(ResponseCode.PULL_RETRY_IMMEDIATELY, None, encode_header(there))


class ConsumerCase(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 2, "%RETRY%g": 1})
        self.seen: dict[str, list[bytes]] = {}
        self.answer: Any = OK

    def consumer(self, name: str = "c1", expression: str = "*", **rest: Any) -> PushConsumer:
        options = {"consume_from_where": FIRST, **rest.pop("options", {})}

        def listen(messages: list[MessageExt], context: Any) -> Any:
            self.seen.setdefault(name, []).extend(message.body for message in messages)
            return self.answer

        consumer = PushConsumer(
            self.clock, "g", listener=listen, options=ConsumerOptions(**options), instance_name=name,
            **{**self.client_arguments(), **rest},
        )  # fmt: skip
        consumer.subscribe("T", expression)
        return consumer

    def started(self, name: str = "c1", expression: str = "*", **rest: Any) -> PushConsumer:
        consumer = self.consumer(name, expression, **rest)
        self.run_to_end(consumer.start())
        self.advance(1)
        return consumer

    def pulls(self) -> list[Any]:
        return self.broker.headers(RequestCode.PULL_MESSAGE)

    def send_all(self, *bodies: bytes, **fields: Any) -> None:
        producer = Producer(self.clock, "p", **self.client_arguments())
        self.run_to_end(producer.start())
        for body in bodies:
            self.run_to_end(producer.send(Message("T", body, **fields)))
        self.run_to_end(producer.stop())


class Filters(ConsumerCase):
    def subscribed(self) -> PushConsumer:
        consumer = self.consumer()
        consumer.subscribe("T", "price > 3", "SQL92")
        return consumer

    def test_an_expression_is_shown_to_a_broker_at_the_start(self) -> None:
        self.run_to_end(self.subscribed().start())
        (body,) = self.broker.headers(RequestCode.CHECK_CLIENT_CONFIG)
        self.assertEqual((body.group, body.subscription_data.sub_string), ("g", "price > 3"))

    def test_a_start_fails_where_the_broker_cannot_filter_so(self) -> None:
        self.broker.refuse[RequestCode.CHECK_CLIENT_CONFIG] = BrokerError(23, "line 1, column 9")
        consumer = self.subscribed()
        self.run_to_failure(consumer.start(), BrokerError)
        self.assertEqual(self.broker.headers(RequestCode.HEART_BEAT), [])
        self.assertEqual(self.cluster.network.connected(), [])
        self.broker.refuse.clear()
        self.run_to_end(consumer.start())

    def test_a_stop_while_the_expression_is_checked_leaves_nothing(self) -> None:
        self.broker.silent.add(RequestCode.CHECK_CLIENT_CONFIG)
        consumer = self.subscribed()
        started = self.begin(consumer.start())
        self.run_to_end(consumer.stop())
        self.advance(3.25)
        self.successResultOf(started)
        self.assertEqual(self.cluster.network.connected(), [])

    def test_a_broker_that_does_not_answer_holds_no_start_up(self) -> None:
        self.broker.silent.add(RequestCode.CHECK_CLIENT_CONFIG)
        started = self.begin(self.subscribed().start())
        self.advance(3.25)
        self.successResultOf(started)


class Consuming(ConsumerCase):
    def test_stored_messages_come_in_order_of_each_queue(self) -> None:
        self.broker.put("T", 0, b"a0", b"a1")
        self.broker.put("T", 1, b"b0")
        consumer = self.started()
        self.assertEqual(sorted(self.seen["c1"]), [b"a0", b"a1", b"b0"])
        self.assertEqual(consumer.queues, [queue(0, "%RETRY%g"), queue(0), queue(1)])

    def test_with_a_limit_so_many_messages_come_in_a_second_from_all_queues_together(self) -> None:
        for queue_id in (0, 1):
            self.broker.put("T", queue_id, *(b"%d-%d" % (queue_id, number) for number in range(50)))
        self.run_to_end(self.consumer(options={"max_messages_per_second": 10}).start())
        self.advance(4)
        counts = []
        for _ in range(5):
            counts.append(len(self.seen["c1"]))
            self.advance(1)
        self.assertLessEqual(counts[-1], 10 * 8 + 10)
        self.assertGreaterEqual(counts[-1], 10 * 8 - 10)
        self.assertTrue(all(0 <= after - before <= 15 for before, after in itertools.pairwise(counts)))
        self.assertEqual({one.max_msg_nums for one in self.pulls() if one.topic == "T"}, {5})

    def test_new_message_comes_by_the_waiting_pull(self) -> None:
        self.started()
        self.assertEqual(self.seen, {})
        self.broker.put("T", 1, b"new")
        self.settle()
        self.assertEqual(self.seen["c1"], [b"new"])

    def test_waiting_pull_suspends_at_the_broker_with_what_apache_sends(self) -> None:
        consumer = self.started()
        pull = next(one for one in self.pulls() if one.topic == "T" and one.queue_id == 0)
        self.assertEqual(
            (pull.consumer_group, pull.queue_offset, pull.max_msg_nums, pull.sys_flag, pull.commit_offset,
             pull.suspend_timeout_millis, pull.subscription, pull.sub_version, pull.expression_type,
             pull.max_msg_bytes, pull.bname),
            ("g", 0, 32, PullSysFlag.FLAG_SUSPEND, 0, 15000, None, consumer.subscriptions["T"].sub_version, "TAG",
             262144, "broker-a"),
        )  # fmt: skip

    def test_offsets_are_committed_every_five_seconds_and_with_the_next_pull(self) -> None:
        self.broker.put("T", 0, b"a0", b"a1")
        self.started()
        last = [one for one in self.pulls() if one.topic == "T" and one.queue_id == 0][-1]
        self.assertEqual((last.queue_offset, last.commit_offset, last.sys_flag), (2, 2, 3))
        self.assertEqual(self.broker.offsets, {})
        self.advance(5)
        self.assertEqual(self.broker.offsets[("g", "T", 0)], 2)

    def test_no_pull_commits_an_offset_that_was_read_and_not_gone_beyond(self) -> None:
        """A slave may have returned a higher one to its master meanwhile."""
        self.broker.put("T", 0, b"a0", b"a1", b"a2")
        self.broker.offsets["g", "T", 0] = 1
        self.answer = defer.Deferred()
        self.started(options={"consume_message_batch_max_size": 2})
        pulls = [one for one in self.pulls() if one.topic == "T" and one.queue_id == 0]
        self.assertEqual([(one.queue_offset, one.commit_offset, one.sys_flag) for one in pulls], [(1, 0, 2), (3, 0, 2)])
        self.answer.callback(OK)
        self.broker.put("T", 0, b"a3")
        self.settle()
        (*_, last) = [one for one in self.pulls() if one.topic == "T" and one.queue_id == 0]
        self.assertEqual((last.queue_offset, last.commit_offset, last.sys_flag), (4, 3, 3))

    def test_group_goes_on_where_it_stopped(self) -> None:
        self.broker.put("T", 0, b"a0", b"a1")
        self.run_to_end(self.started().stop())
        self.broker.put("T", 0, b"a2")
        self.started("c2")
        self.assertEqual(self.seen, {"c1": [b"a0", b"a1"], "c2": [b"a2"]})

    def test_tags_that_only_share_a_hash_are_filtered_here(self) -> None:
        """The broker compares hash codes: Aa and BB have the same one."""
        self.broker.put("T", 0, b"wanted", properties="TAGS\x01Aa")
        self.broker.put("T", 0, b"not wanted", properties="TAGS\x01BB")
        self.broker.put("T", 0, b"no tag")
        self.started(expression="Aa || C")
        self.assertEqual(self.seen["c1"], [b"wanted"])

    def test_messages_passed_over_count_as_consumed_when_nothing_is_in_flight(self) -> None:
        self.broker.put("T", 0, b"no tag", b"no tag")
        self.started(expression="A")
        self.advance(5)
        self.assertEqual(self.broker.offsets[("g", "T", 0)], 2)

    def test_messages_know_their_queues_bounds(self) -> None:
        messages: list[MessageExt] = []
        consumer = self.consumer()
        consumer.listen(lambda batch, context: messages.extend(batch) or OK)
        self.broker.put("T", 0, b"a0", b"a1")
        self.run_to_end(consumer.start())
        self.advance(1)
        self.assertEqual(
            [(one.properties["MIN_OFFSET"], one.properties["MAX_OFFSET"]) for one in messages], [("0", "2")] * 2
        )

    def test_message_to_consume_later_goes_back_to_its_broker(self) -> None:
        self.answer = LATER
        self.broker.put("T", 0, b"a0", properties="UNIQ_KEY\x01U1")
        self.started()
        self.assertEqual(
            self.broker.sent_back,
            [
                ConsumerSendMsgBackRequestHeader(
                    offset=0, group="g", delay_level=0, origin_msg_id="U1", origin_topic="T", max_reconsume_times=16,
                    bname="broker-a",
                )
            ],
        )  # fmt: skip

    def test_message_the_broker_does_not_take_back_is_sent_to_the_retry_topic(self) -> None:
        self.answer = LATER
        self.broker.refuse[RequestCode.CONSUMER_SEND_MSG_BACK] = BrokerError(ResponseCode.SYSTEM_ERROR, "no")
        self.broker.put("T", 0, b"a0", properties="UNIQ_KEY\x01U1\x02TAGS\x01A")
        consumer = self.started()
        ((topic, properties, header),) = self.broker.delayed
        self.assertEqual((topic, header.reconsume_times, header.max_reconsume_times), ("%RETRY%g", 1, 16))
        kept = {name: properties[name] for name in ("UNIQ_KEY", "TAGS", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "DELAY")}
        self.assertEqual(
            kept, {"UNIQ_KEY": "U1", "TAGS": "A", "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "U1", "DELAY": "3"}
        )
        self.assertEqual(consumer.consumed_offsets("T"), {queue(0): 1})

    def test_message_that_no_broker_takes_back_is_tried_here_again(self) -> None:
        self.answer = LATER
        for code in (RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2):
            self.broker.refuse[code] = BrokerError(ResponseCode.SYSTEM_ERROR, "no")
        self.broker.put("T", 0, b"a0")
        consumer = self.started()
        self.answer = OK
        self.advance(8)  # 3 s for the send to the retry topic, 5 s before it is tried here
        self.assertEqual(self.seen["c1"], [b"a0", b"a0"])
        self.assertEqual(consumer.consumed_offsets("T"), {queue(0): 1})

    def test_paused_consumer_takes_no_new_messages(self) -> None:
        consumer = self.started()
        consumer.pause()
        self.broker.put("T", 0, b"a0", b"a1")
        self.advance(3)
        self.assertEqual(self.seen["c1"], [b"a0", b"a1"])  # the pull that waited
        self.broker.put("T", 0, b"a2")
        self.advance(3)
        self.assertEqual(len(self.seen["c1"]), 2)
        consumer.resume()
        self.advance(1.25)
        self.assertEqual(self.seen["c1"][2:], [b"a2"])

    def test_topic_subscribed_while_running_is_consumed(self) -> None:
        consumer = self.started()
        self.cluster.add_route("U", "broker-a", 1)
        self.broker.put("U", 0, b"u0")
        consumer.subscribe("U")
        self.advance(1)
        self.assertEqual(self.seen["c1"], [b"u0"])
        self.assertIn("U", [one.topic for one in self.broker.heartbeats[-1].consumer_data_set[0].subscription_data_set])

    def test_topic_that_is_made_later_is_consumed(self) -> None:
        consumer = self.consumer()
        consumer.subscribe("Later")
        self.run_to_end(consumer.start())
        self.advance(1)
        self.cluster.add_route("Later", "broker-a", 1)
        self.broker.put("Later", 0, b"l0")
        self.advance(30, step=1)
        self.assertEqual(self.seen["c1"], [b"l0"])


class StartOffsets(ConsumerCase):
    def begins_at(self, **options: Any) -> int:
        self.broker.put("T", 0, b"a0", b"a1", b"a2")
        self.started(options=options)
        return int(next(one for one in self.pulls() if one.topic == "T" and one.queue_id == 0).queue_offset)

    def test_new_group_begins_at_the_end_by_default(self) -> None:
        self.assertEqual(self.begins_at(consume_from_where=ConsumeFromWhere.LAST_OFFSET), 3)

    def test_new_group_may_begin_at_the_start(self) -> None:
        self.assertEqual(self.begins_at(consume_from_where=FIRST), 0)

    def test_new_group_may_begin_at_a_time(self) -> None:
        where = ConsumeFromWhere.TIMESTAMP
        self.assertEqual(self.begins_at(consume_from_where=where, consume_timestamp=1_700_000_000.5), 1)
        self.assertEqual(
            {one.timestamp for one in self.broker.headers(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)}, {1_700_000_000_500}
        )

    def test_time_without_a_value_is_half_an_hour_ago(self) -> None:
        self.begins_at(consume_from_where=ConsumeFromWhere.TIMESTAMP)
        asked = self.broker.headers(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)[0].timestamp
        self.assertEqual(asked, (1_795_217_000 - 1800) * 1000)

    def test_committed_offset_counts_more_than_the_policy(self) -> None:
        self.broker.offsets[("g", "T", 0)] = 2
        self.assertEqual(self.begins_at(consume_from_where=FIRST), 2)

    def test_retries_are_never_skipped(self) -> None:
        self.broker.put("%RETRY%g", 0, b"retry", properties="RETRY_TOPIC\x01T")
        self.begins_at(consume_from_where=ConsumeFromWhere.LAST_OFFSET)
        self.assertEqual(self.seen["c1"], [b"retry"])

    def test_queue_whose_offset_cannot_be_learnt_is_taken_later(self) -> None:
        self.broker.refuse[RequestCode.QUERY_CONSUMER_OFFSET] = BrokerError(ResponseCode.SYSTEM_BUSY, "busy")
        consumer = self.started()
        self.assertEqual(consumer.queues, [])
        self.broker.refuse.clear()
        self.advance(2)
        self.assertEqual(len(consumer.queues), 3)


class Trouble(ConsumerCase):
    def test_failed_pull_is_tried_again_after_three_seconds(self) -> None:
        self.broker.put("T", 0, b"a0")
        self.broker.refuse[RequestCode.PULL_MESSAGE] = BrokerError(ResponseCode.SYSTEM_BUSY, "busy")
        self.started()
        self.broker.refuse.clear()
        self.advance(2)
        self.assertEqual(self.seen, {})
        self.advance(1)
        self.assertEqual(self.seen["c1"], [b"a0"])

    def test_broker_under_flow_control_is_asked_again_soon(self) -> None:
        self.broker.put("T", 0, b"a0")
        self.broker.refuse[RequestCode.PULL_MESSAGE] = BrokerError(ResponseCode.FLOW_CONTROL, "slow down")
        self.started()
        self.broker.refuse.clear()
        self.advance(0.25)
        self.assertEqual(self.seen["c1"], [b"a0"])

    def test_slave_that_sends_its_readers_to_a_master_nobody_knows_yet_is_asked_once_a_second(self) -> None:
        consumer = self.consumer()
        self.run_to_end(consumer.start())
        self.advance(1)
        for routes in self.cluster.routes.values():
            addresses = routes.broker_datas[0].broker_addrs
            addresses[1] = addresses.pop(0)
        self.run_to_end(consumer.client.update_routes())
        answer_now, self.broker._pull_now = self.broker._pull_now, sent_to_master
        self.broker.asked.clear()
        self.broker._wake()
        self.advance(5)
        pulls = self.broker.headers(RequestCode.PULL_MESSAGE)
        self.assertEqual(
            [sum(one.topic == "T" and one.queue_id == number for one in pulls) for number in (0, 1)], [4, 4]
        )
        self.broker._pull_now = answer_now
        self.broker.put("T", 0, b"one")
        self.advance(1)
        self.assertEqual(self.seen, {"c1": [b"one"]})

    def test_lost_connection_is_made_again(self) -> None:
        consumer = self.started()
        for channel in list(self.broker.factory.channels):
            channel.close()
        self.settle()
        self.assertEqual(self.broker.members["g"], {})
        self.broker.asked.clear()
        self.broker.put("T", 0, b"after")
        self.advance(4)
        self.assertEqual(self.seen["c1"], [b"after"])
        self.assertEqual(self.broker.asked[0][0], RequestCode.HEART_BEAT)
        self.assertEqual(list(self.broker.members["g"]), ["10.9.9.9@c1"])
        self.run_to_end(consumer.stop())

    def test_illegal_offset_is_corrected_to_what_the_broker_names(self) -> None:
        self.broker.put("T", 0, *(b"%d" % one for one in range(5)))
        self.broker.min_offsets[("T", 0)] = 3
        consumer = self.started()
        self.advance(2)
        self.assertEqual(self.seen["c1"], [b"3", b"4"])
        self.assertEqual(consumer.consumed_offsets("T")[queue(0)], 5)

    def test_what_waits_here_is_pulled_again_where_the_broker_lost_its_logs_end(self) -> None:
        waiting: list[defer.Deferred[Any]] = []

        def listen(messages: list[MessageExt], context: Any) -> Any:
            self.seen.setdefault("c1", []).extend(message.body for message in messages)
            waiting.append(defer.Deferred())
            return waiting[-1]

        self.broker.put("T", 0, *(b"%d" % one for one in range(5)))
        consumer = self.consumer()
        consumer.listen(listen)
        self.run_to_end(consumer.start())
        self.advance(2)
        self.assertEqual(self.seen["c1"], [b"0", b"1", b"2", b"3", b"4"])
        answer_now = self.broker._pull_now

        def lost_its_end(request: RemotingCommand, header: PullMessageRequestHeader) -> RemotingCommand:
            if header.queue_offset <= 4:
                return answer_now(request, header)
            there = PullMessageResponseHeader(
                suggest_which_broker_id=0, next_begin_offset=4, min_offset=0, max_offset=4
            )
            return request.answer(ResponseCode.PULL_OFFSET_MOVED, None, encode_header(there))

        del self.broker.queues[("T", 0)][4:]
        self.broker._pull_now = lost_its_end
        self.broker._wake()
        self.seen.clear()
        self.advance(5)
        self.assertEqual(self.seen["c1"], [b"0", b"1", b"2", b"3"])
        self.assertEqual(consumer.consumed_offsets("T")[queue(0)], 0)

    def test_too_many_unconsumed_messages_hold_pulling_back(self) -> None:
        waiting: list[defer.Deferred[Any]] = []

        def listen(messages: list[MessageExt], context: Any) -> Any:
            waiting.append(defer.Deferred())
            return waiting[-1]

        consumer = self.consumer(options={"flow_limits": FlowLimits(max_count=3), "pull_batch_size": 2})
        consumer.listen(listen)
        self.broker.put("T", 0, *(b"%d" % one for one in range(10)))
        self.run_to_end(consumer.start())
        self.advance(2)
        self.assertEqual(len(waiting), 4)
        for one in list(waiting):
            one.callback(OK)
        self.advance(0.5)
        self.assertEqual(len(waiting), 8)

    def test_broker_that_is_gone_is_no_reason_to_stop(self) -> None:
        consumer = self.started()
        self.cluster.kill("broker-a")
        self.advance(40, step=5)
        self.run_to_end(consumer.stop())
        self.assert_no_timers()


class Sharing(ConsumerCase):
    def test_second_member_takes_half_and_the_first_takes_all_again_when_it_leaves(self) -> None:
        one = self.started("c1")
        two = self.started("c2")
        self.advance(1)
        self.assertEqual([one.topic for one in one.queues], ["%RETRY%g", "T"])
        self.assertEqual([one.topic for one in two.queues], ["T"])
        self.broker.put("T", 0, b"a")
        self.broker.put("T", 1, b"b")
        self.settle()
        self.assertEqual(self.seen, {"c1": [b"a"], "c2": [b"b"]})
        self.run_to_end(two.stop())
        self.advance(1)
        self.assertEqual(one.queues, [queue(0, "%RETRY%g"), queue(0), queue(1)])
        self.broker.put("T", 1, b"c")
        self.settle()
        self.assertEqual(self.seen["c1"], [b"a", b"c"])

    def test_result_that_comes_after_the_queue_went_to_another_commits_nothing(self) -> None:
        waiting: list[defer.Deferred[Any]] = []

        def listen(messages: list[MessageExt], context: Any) -> Any:
            waiting.append(defer.Deferred())
            return waiting[-1]

        one = self.consumer("c1")
        one.listen(listen)
        self.broker.put("T", 1, b"slow")
        self.run_to_end(one.start())
        self.advance(1)
        self.started("c2")
        self.advance(1)
        waiting[0].callback(OK)
        self.advance(6)
        self.assertEqual(self.seen, {"c2": [b"slow"]})
        self.assertEqual(one.consumed_offsets("T"), {})
        self.run_to_end(one.stop())

    def test_members_that_died_are_noticed_at_the_next_rebalance_without_a_notice(self) -> None:
        one = self.started("c1")
        self.broker.members["g"]["10.9.9.9@c2"] = self.broker.client("g")
        self.advance(20, step=1)
        self.assertEqual(len([each for each in one.queues if each.topic == "T"]), 1)
        del self.broker.members["g"]["10.9.9.9@c2"]
        self.advance(20, step=1)
        self.assertEqual(len([each for each in one.queues if each.topic == "T"]), 2)

    def test_sub_version_grows_when_queues_change_and_brokers_hear_it_first(self) -> None:
        consumer = self.started()
        version = consumer.subscriptions["T"].sub_version
        told = self.broker.heartbeats[-1].consumer_data_set[0].subscription_data_set
        self.assertEqual({one.topic: one.sub_version for one in told}["T"], version)
        self.assertEqual({one.sub_version for one in self.pulls() if one.topic == "T"}, {version})

    def test_heartbeat_says_what_apaches_client_says(self) -> None:
        self.started(expression="A||B")
        (data,) = self.broker.heartbeats[-1].consumer_data_set
        self.assertEqual(
            (data.group_name, data.consume_type, data.message_model, data.consume_from_where, data.unit_mode),
            ("g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET", False),
        )
        self.assertEqual(
            [(one.topic, one.sub_string, sorted(one.tags_set)) for one in data.subscription_data_set],
            [("%RETRY%g", "*", []), ("T", "A||B", ["A", "B"])],
        )


class AskedByServers(ConsumerCase):
    def ask(self, code: RequestCode, fields: dict[str, str], body: bytes = b"") -> RemotingCommand:
        request = RemotingCommand.request(code, fields, body)
        return self.run_to_end(self.broker.client("g").send_request(request, 3))

    def test_reset_moves_the_group_to_the_new_offset(self) -> None:
        self.broker.put("T", 0, b"a0", b"a1", b"a2")
        self.started()
        body = encode_body(ResetOffsetBody({queue(0): 1, queue(1): 0}))
        fields = {"topic": "T", "group": "g", "timestamp": "0", "isForce": "true"}
        self.broker.client("g").send_one_way(
            RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        )
        self.settle()
        self.advance(1)
        self.assertEqual(self.seen["c1"], [b"a0", b"a1", b"a2", b"a1", b"a2"])

    def test_offsets_are_told(self) -> None:
        self.broker.put("T", 0, b"a0")
        self.started()
        answer = self.ask(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": "T", "group": "g"})
        table = decode_body(GetConsumerStatusBody, answer.body).message_queue_table
        self.assertEqual(table, {queue(0): 1})

    def test_running_info_tells_subscriptions_and_queues(self) -> None:
        self.broker.put("T", 0, b"a0")
        consumer = self.started()
        answer = self.ask(
            RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "g", "clientId": consumer.client.client_id}
        )
        info = decode_body(ConsumerRunningInfo, answer.body)
        self.assertEqual(sorted(info.mq_table), consumer.queues)
        self.assertEqual((info.mq_table[queue(0)].commit_offset, info.mq_table[queue(0)].cached_msg_count), (1, 0))
        self.assertEqual([one.topic for one in info.subscription_set], ["%RETRY%g", "T"])
        self.assertEqual(info.properties["PROP_CONSUME_TYPE"], "CONSUME_PASSIVELY")

    def test_running_info_tells_what_was_done_by_topic(self) -> None:
        consumer = self.started()
        for body, self.answer in ((b"a0", OK), (b"a1", LATER)):
            for _ in range(2):
                self.advance(5)
            self.broker.put("T", 0, body)
            self.advance(5)
        answer = self.ask(
            RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "g", "clientId": consumer.client.client_id}
        )
        table = decode_body(ConsumerRunningInfo, answer.body).status_table
        self.assertEqual(list(table), ["%RETRY%g", "T"])
        found = table["T"]
        self.assertTrue(found.pull_tps > 0 and found.consume_ok_tps > 0 and found.consume_failed_tps > 0, found)
        self.assertEqual(found.pull_tps, found.consume_ok_tps + found.consume_failed_tps)
        self.assertEqual(found.consume_failed_msgs, 1)

    def test_unknown_group_is_answered_as_apache_does(self) -> None:
        self.started()
        answer = self.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "other", "clientId": "c"})
        self.assertEqual(
            (answer.code, answer.remark),
            (ResponseCode.SYSTEM_ERROR, "The Consumer Group <other> not exist in this consumer"),
        )

    def test_message_is_consumed_directly(self) -> None:
        self.started()
        self.broker.put("Other", 0, b"direct")
        record = self.broker.queues[("Other", 0)][0].record
        for given, expected in ((OK, "CR_SUCCESS"), (LATER, "CR_LATER"), (None, "CR_RETURN_NULL")):
            self.answer = given
            answer = self.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "g", "brokerName": "b"}, record)
            result = decode_body(ConsumeMessageDirectlyResult, answer.body)
            self.assertEqual((result.consume_result, result.remark), (expected, None))
        self.assertEqual(self.seen["c1"], [b"direct"] * 3)

    def test_listener_that_fails_on_a_direct_message_is_reported(self) -> None:
        def fail(messages: Any, context: Any) -> Any:
            raise ValueError("bad day")

        consumer = self.consumer()
        consumer.listen(fail)
        self.run_to_end(consumer.start())
        self.broker.put("Other", 0, b"direct")
        answer = self.ask(
            RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "g"}, self.broker.queues[("Other", 0)][0].record
        )
        result = decode_body(ConsumeMessageDirectlyResult, answer.body)
        self.assertEqual((result.consume_result, result.remark), ("CR_THROW_EXCEPTION", "ValueError: bad day"))


class LifeCycle(ConsumerCase):
    def test_stop_commits_leaves_and_cleans_up_and_is_harmless_twice(self) -> None:
        self.broker.put("T", 0, b"a0")
        consumer = self.started()
        self.run_to_end(consumer.stop())
        self.run_to_end(consumer.stop())
        self.assertEqual(self.broker.offsets[("g", "T", 0)], 1)
        self.assertEqual(self.broker.headers(RequestCode.UNREGISTER_CLIENT)[0].consumer_group, "g")
        self.assertEqual(self.broker.members["g"], {})
        self.assert_no_timers()
        self.assertEqual(consumer.queues, [])

    def test_stop_lets_an_open_call_finish_and_commits_it(self) -> None:
        waiting: defer.Deferred[Any] = defer.Deferred()
        self.answer = waiting
        self.broker.put("T", 0, b"a0")
        consumer = self.started()
        stopping = self.begin(consumer.stop())
        self.assertNoResult(stopping)
        waiting.callback(OK)
        self.settle()
        self.successResultOf(stopping)
        self.assertEqual(self.broker.offsets[("g", "T", 0)], 1)
        self.assert_no_timers()

    def test_stop_in_the_middle_of_start_is_clean(self) -> None:
        consumer = self.consumer()
        starting, stopping = consumer.start(), consumer.stop()
        self.settle()
        self.advance(2)
        self.successResultOf(stopping)
        self.successResultOf(starting)
        self.assertEqual(consumer.queues, [])
        self.assert_no_timers()

    def test_stop_without_start_is_harmless(self) -> None:
        self.run_to_end(self.consumer().stop())
        self.assert_no_timers()

    def test_start_without_any_server_waits_for_them(self) -> None:
        self.cluster.network.close("10.0.0.1:9876")
        consumer = self.started()
        self.assertEqual(consumer.queues, [])
        self.cluster.network.listen("10.0.0.1:9876", self.cluster.name_servers[0].factory)
        self.advance(5)
        self.assertEqual(len(consumer.queues), 3)

    def test_start_needs_listener_and_subscription_and_happens_once(self) -> None:
        bare = PushConsumer(self.clock, "g", **self.client_arguments())
        self.assertIn("listen()", str(self.run_to_failure(bare.start(), ClientStateError)))
        bare.listen(lambda messages, context: OK)
        self.assertIn("subscribe()", str(self.run_to_failure(bare.start(), ClientStateError)))
        consumer = self.started()
        self.run_to_failure(consumer.start(), ClientStateError)
        self.assertRaises(ClientStateError, consumer.listen, lambda messages, context: OK)

    def test_bad_group_and_topic_are_refused(self) -> None:
        self.assertRaises(ClientOptionIllegal, PushConsumer, self.clock, "a b", "h:1")
        self.assertRaises(ClientOptionIllegal, self.consumer().subscribe, "../x")

    def test_use_in_a_forked_process_is_refused(self) -> None:
        pids = [100]
        consumer = self.consumer(get_pid=lambda: pids[0])
        pids[0] = 200
        self.run_to_failure(consumer.start(), ForkedProcess)

    def test_second_member_of_a_group_in_one_client_is_refused_and_the_first_lives_on(self) -> None:
        client = MQClient(self.clock, **self.client_arguments())
        first = self.started(client=client)
        second = self.consumer(client=client)
        self.run_to_failure(second.start(), ClientStateError)
        self.broker.put("T", 0, b"a0")
        self.settle()
        self.assertEqual(self.seen["c1"], [b"a0"])
        self.run_to_end(first.stop())
        self.assert_no_timers()

    def test_consumer_and_producer_share_a_client(self) -> None:
        client = MQClient(self.clock, **self.client_arguments())
        consumer, producer = self.started(client=client), Producer(self.clock, "p", client=client)
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("T", b"both")))
        self.settle()
        self.assertEqual(self.seen["c1"], [b"both"])
        self.run_to_end(producer.stop())
        self.run_to_end(consumer.stop())
        self.assert_no_timers()


class TwoBrokers(ConsumerCase):
    def test_queues_of_all_brokers_are_consumed_and_committed_where_they_are(self) -> None:
        other: FakeBroker = self.cluster.add_broker("broker-b", {"T": 1})
        other.put("T", 0, b"from b")
        self.broker.put("T", 0, b"from a")
        consumer = self.started()
        self.assertEqual(sorted(self.seen["c1"]), [b"from a", b"from b"])
        self.run_to_end(consumer.stop())
        self.assertEqual((self.broker.offsets[("g", "T", 0)], other.offsets), (1, {("g", "T", 0): 1}))


class Broadcasting(ConsumerCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.options = {"message_model": MessageModel.BROADCASTING, "offset_directory": Path(folder.name)}

    def test_every_member_gets_every_message_and_goes_on_where_it_stopped(self) -> None:
        self.broker.put("T", 0, b"first")
        members = [self.started(name, options=self.options) for name in ("c1", "c2")]
        self.assertEqual(self.seen, {"c1": [b"first"], "c2": [b"first"]})
        self.run_to_end(members[0].stop())
        self.broker.put("T", 0, b"second")
        self.started("c1", options=self.options)
        self.assertEqual(self.seen, {"c1": [b"first", b"second"], "c2": [b"first", b"second"]})

    def test_offsets_stay_on_this_machine_and_there_is_no_retry_topic(self) -> None:
        consumer = self.started(options=self.options)
        self.broker.put("T", 0, b"x")
        self.advance(6)
        self.assertEqual(self.broker.offsets, {})
        self.assertEqual(list(consumer.subscriptions), ["T"])
        self.assertEqual(self.broker.heartbeats[-1].consumer_data_set[0].message_model, "BROADCASTING")
        self.assertEqual([path.name for path in self.options["offset_directory"].rglob("*.json")], ["offsets.json"])


class Limits(ConsumerCase):
    """Limits for all queues of a topic together."""

    def test_limit_of_a_topic_is_shared_among_its_queues(self) -> None:
        self.answer = defer.Deferred()
        limits = FlowLimits(max_count_of_topic=8, max_size_bytes_of_topic=1 << 20)
        consumer = self.started(options={"flow_limits": limits, "pull_batch_size": 1, "concurrency": 1})
        self.send_all(*(b"%d" % number for number in range(40)))
        self.advance(3)
        self.assertEqual([one.process_queue.count for one in consumer._rebalance.pulls.values() if one.queue.topic == "T"],
                         [5, 5])  # fmt: skip
        self.assertEqual(consumer.flow_limits("T").max_size_bytes, 1 << 19)

    def test_a_queue_may_always_hold_something(self) -> None:
        self.assertEqual(FlowLimits(max_count_of_topic=3).share(8), FlowLimits(1, max_count_of_topic=3))


class QueuesListener(ConsumerCase):
    def test_it_is_told_of_all_queues_and_ours_whenever_ours_change(self) -> None:
        told: list[Any] = []
        first = self.consumer("c1")
        first.listen_to_queues(lambda topic, queues, own: told.append((topic, len(queues), len(own))))
        self.run_to_end(first.start())
        self.advance(1)
        self.assertCountEqual(told, [("T", 2, 2), ("%RETRY%g", 1, 1)])
        told.clear()
        second = self.started("c2")
        self.advance(1)
        self.assertEqual([one for one in told if one[0] == "T"], [("T", 2, 1)])
        self.run_to_end(second.stop())
        self.advance(1)
        self.assertEqual([one for one in told if one[0] == "T"], [("T", 2, 1), ("T", 2, 2)])

    def test_one_that_fails_is_logged_and_stops_nothing(self) -> None:
        consumer = self.consumer()
        consumer.listen_to_queues(lambda topic, queues, own: own.index("none"))
        self.run_to_end(consumer.start())
        self.send_all(b"x")
        self.advance(2)
        self.assertEqual(self.seen["c1"], [b"x"])
        self.assertTrue(self.flushLoggedErrors(ValueError))


class Damage(ConsumerCase):
    """A record that cannot be read at all, its lengths included."""

    def test_it_is_passed_by_and_everything_around_it_is_consumed(self) -> None:
        self.send_all(*(b"%d" % number for number in range(12)))
        stored = self.broker.queues["T", 0]
        bad = stored[3]
        stored[3] = attrs.evolve(bad, record=bad.record[:4] + b"\x00" * (len(bad.record) - 4))
        self.started()
        self.advance(3)
        self.assertEqual(sorted(self.seen["c1"]), sorted({b"%d" % number for number in range(12)} - {bad.body}))
        self.send_all(b"later", b"later")
        self.advance(6)
        self.assertEqual(self.seen["c1"].count(b"later"), 2)
        self.assertEqual(self.broker.offsets["g", "T", 0], len(stored))


class WithoutAMaster(ConsumerCase):
    """A slave is left: it has the messages and the offsets."""

    def test_group_that_starts_then_goes_on_where_it_was_and_commits_at_the_slave(self) -> None:
        self.send_all(b"0", b"1", b"2", b"3")
        self.broker.offsets["g", "T", 0] = 1
        route = self.cluster.routes["T"]
        slave = attrs.evolve(route.broker_datas[0], broker_addrs={1: self.broker.address})
        for topic in ("T", "%RETRY%g"):
            self.cluster.routes[topic] = attrs.evolve(self.cluster.routes[topic], broker_datas=[slave])
        self.started()
        self.advance(6)
        self.assertEqual(len(self.seen["c1"]), 3)
        self.assertEqual((self.broker.offsets["g", "T", 0], self.broker.offsets["g", "T", 1]), (2, 2))
