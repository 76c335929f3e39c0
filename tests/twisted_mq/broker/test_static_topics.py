"""Two brokers with a static topic: what each answers of logical queues, before and after one was moved."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.broker.topics.other_brokers import OtherBrokers
from twisted_mq.protocol.bodies import (
    LogicQueueMappingItem,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.bodies.codec import to_value
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.flags import PullSysFlag
from twisted_mq.protocol.headers import (
    PullMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.header_codec import encode_header

ON_A = LogicQueueMappingItem(gen=0, queue_id=0, bname="a", logic_offset=0)
ON_B = LogicQueueMappingItem(gen=1, queue_id=2, bname="b", logic_offset=-1)
PLACED = attrs.evolve(ON_B, logic_offset=10_000)
WHOLE_PULL = 2 | 4
"""Suspend, and with a subscription."""


class _Routes:
    """Routes to the other brokers: each at its name."""

    async def master(self, broker_name: str, topic: str) -> str:
        return broker_name


class Pair:
    """Brokers a and b, each with three queues of topic T, which ask each other."""

    def __init__(self) -> None:
        self.brokers: dict[str, BrokerInMemory] = {}
        self.peers: dict[str, Peer] = {}
        self.asked: list[tuple[str, int]] = []
        for name in ("a", "b"):
            others = OtherBrokers(_Routes(), self.invoke)  # type: ignore[arg-type]
            clock = self.brokers["a"].clock if self.brokers else None
            self.brokers[name] = BrokerInMemory(broker_name=name, parts={"others": others}, clock=clock)
            self.peers[name] = self.brokers[name].connect()

    def invoke(self, address: str, command: RemotingCommand, timeout: float) -> defer.Deferred[RemotingCommand]:
        self.asked.append((address, command.code))
        return defer.succeed(self.brokers[address].connect().ask(command.code, dict(command.ext_fields), command.body))

    def tell(self, name: str, epoch: int, *pieces: LogicQueueMappingItem, total: int = 1) -> RemotingCommand:
        detail = TopicQueueMappingDetail(
            topic="T", total_queues=total, bname=name, epoch=epoch, hosted_queues={0: list(pieces)} if pieces else {}
        )
        fields = {
            "topic": "T", "defaultTopic": "TBW102", "readQueueNums": "3", "writeQueueNums": "3", "perm": "6",
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false", "force": "false",
        }  # fmt: skip
        return self.peers[name].ask(RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, fields, encode_body(detail))

    def move(self) -> None:
        """Queue 0 from a to b, as mqadmin does it."""
        assert [self.tell("b", 2, ON_A, ON_B).code, self.tell("a", 2, ON_A, ON_B).code] == [0, 0]
        assert [self.tell(name, 2, ON_A, PLACED).code for name in ("b", "a")] == [0, 0]

    def send(self, name: str, body: bytes, queue_id: int = 0, **more: Any) -> RemotingCommand:
        header = SendMessageRequestHeaderV2(
            producer_group="P", topic="T", default_topic="TBW102", default_topic_queue_nums=4, queue_id=queue_id,
            sys_flag=0, born_timestamp=1, flag=0, properties=None, reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        return self.peers[name].ask(RequestCode.SEND_MESSAGE_V2, encode_header(header), body, **more)

    def pull(self, name: str, offset: int, **fields: Any) -> RemotingCommand:
        header = PullMessageRequestHeader(
            consumer_group="G", topic="T", queue_id=0, queue_offset=offset, max_msg_nums=32, sys_flag=4,
            commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
        )  # fmt: skip
        return self.peers[name].ask(RequestCode.PULL_MESSAGE, {**encode_header(header), **fields})

    def ask(self, name: str, code: int, **fields: str) -> tuple[int, dict[str, str]]:
        answer = self.peers[name].ask(code, {"topic": "T", "queueId": "0", "consumerGroup": "G", **fields})
        return answer.code, answer.ext_fields


def offsets(answer: RemotingCommand) -> tuple[int, ...]:
    """Code, next, least, greatest offset, and what is added to a message's."""
    names = ("nextBeginOffset", "minOffset", "maxOffset", "offsetDelta")
    return (answer.code, *(int(answer.ext_fields[name]) for name in names))


class StaticTopicsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.pair = Pair()
        self.assertEqual([self.pair.tell("a", 1, ON_A).code, self.pair.tell("b", 1).code], [0, 0])

    def test_the_mapping_is_kept_shown_and_registered(self) -> None:
        broker = self.pair.brokers["a"]
        known = TopicQueueMappingDetail(topic="T", total_queues=1, bname="a", epoch=1, hosted_queues={0: [ON_A]})
        answer = self.pair.peers["a"].ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "T", "lo": "true"})
        config = decode_body(TopicConfigAndQueueMapping, answer.body)
        self.assertEqual((config.write_queue_nums, config.mapping_detail), (3, known))
        answer = self.pair.peers["a"].ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "T"})
        self.assertNotIn(b"mappingDetail", answer.body)
        answer = self.pair.peers["a"].ask(RequestCode.GET_ALL_TOPIC_CONFIG)
        table = decode_body(TopicConfigAndMappingSerializeWrapper, answer.body)
        self.assertEqual(table.topic_queue_mapping_detail_map, {"T": known})
        self.assertEqual(table.mapping_data_version, broker.controller.static_topics.data_version)
        self.assertEqual([config.topic_name for config in broker.registered[-1]], ["T"])

    def test_a_mapping_of_another_topic_or_broker_is_refused_and_changes_nothing(self) -> None:
        before = to_value(self.pair.brokers["a"].controller.static_topics.get("T"))
        answer = self.pair.peers["a"].ask(
            RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
            {"topic": "U", "defaultTopic": "TBW102", "readQueueNums": "3", "writeQueueNums": "3", "perm": "6",
             "topicFilterType": "SINGLE_TAG", "order": "false"},
            encode_body(TopicQueueMappingDetail(topic="T", bname="a")),
        )  # fmt: skip
        self.assertEqual((answer.code, self.pair.brokers["a"].controller.topics.get("U")), (29, None))
        stale = self.pair.tell("a", 0, ON_A)
        self.assertEqual(stale.code, ResponseCode.SYSTEM_ERROR)
        self.assertEqual(stale.remark, "Can't accept data with small epoch 0 < 1")
        self.assertEqual(to_value(self.pair.brokers["a"].controller.static_topics.get("T")), before)

    def test_only_the_leader_takes_sends_and_names_the_logical_queue(self) -> None:
        for more in ({}, {"serialize_type": SerializeType.ROCKETMQ}):
            answer = self.pair.send("a", b"x", **more)
            self.assertEqual((answer.code, answer.ext_fields["queueId"]), (0, "0"))
        self.assertEqual(answer.ext_fields["queueOffset"], "1")
        refused = self.pair.send("b", b"x")
        self.assertEqual(refused.code, ResponseCode.NOT_LEADER_FOR_QUEUE)
        self.assertEqual(refused.remark, "T-0 does not exit in request process of current broker b")
        self.assertEqual(self.pair.send("a", b"x", queue_id=-1).ext_fields["queueId"], "0")
        self.assertEqual(self.pair.send("a", b"x", queue_id=1).code, ResponseCode.NOT_LEADER_FOR_QUEUE)

    def test_the_full_header_of_a_send_is_mapped_too(self) -> None:
        self.pair.move()
        header = SendMessageRequestHeader(
            producer_group="P", topic="T", default_topic="TBW102", default_topic_queue_nums=4, queue_id=0,
            sys_flag=0, born_timestamp=1, flag=0, properties=None, reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        answer = self.pair.peers["b"].ask(RequestCode.SEND_MESSAGE, encode_header(header), b"x")
        self.assertEqual((answer.ext_fields["queueId"], answer.ext_fields["queueOffset"]), ("0", "10000"))
        self.assertEqual(self.pair.brokers["b"].store.max_offset_in_queue("T", 2), 1)

    def test_a_queue_that_was_moved_is_read_from_both_brokers_through_its_leader(self) -> None:
        for body in (b"one", b"two"):
            self.pair.send("a", body)
        self.pair.move()
        self.assertEqual(self.pair.send("b", b"three").ext_fields["queueOffset"], "10000")
        first = self.pair.pull("b", 0)
        self.assertEqual(offsets(first), (0, 2, 0, 10_000, 0))
        self.assertIn(b"two", first.body)
        self.assertEqual(offsets(self.pair.pull("b", 2)), (20, 10_000, 10_000, 10_000, 10_000))
        last = self.pair.pull("b", 10_000)
        self.assertEqual(offsets(last), (0, 10_001, 10_000, 10_001, 10_000))
        self.assertIn(b"three", last.body)
        self.assertEqual(self.pair.pull("a", 0).code, ResponseCode.NOT_LEADER_FOR_QUEUE)
        self.assertEqual(self.pair.asked, [("a", RequestCode.PULL_MESSAGE)] * 2)

    def test_a_pull_ends_with_its_piece_where_the_brokers_queue_goes_on(self) -> None:
        for body in (b"0", b"1", b"two", b"three", b"4", b"5"):
            self.pair.send("a", body)
        middle = attrs.evolve(ON_A, start_offset=2, end_offset=4)
        detail = TopicQueueMappingDetail(
            topic="T", total_queues=1, bname="b", epoch=2, hosted_queues={0: [middle, PLACED]}
        )
        self.pair.brokers["b"].controller.static_topics.update(detail)
        answer = self.pair.pull("b", 0)
        self.assertEqual([message.body for message in iterate_messages(answer.body)], [b"two", b"three"])
        self.assertEqual(offsets(answer)[:2], (0, 2))

    def test_a_pull_waits_at_the_last_piece_for_its_next_message(self) -> None:
        self.pair.move()
        peer = self.pair.brokers["b"].connect()
        header = PullMessageRequestHeader(
            consumer_group="G", topic="T", queue_id=0, queue_offset=10_000, max_msg_nums=32, sys_flag=WHOLE_PULL,
            commit_offset=0, suspend_timeout_millis=15_000, subscription="*", sub_version=0,
        )  # fmt: skip
        peer.send(RemotingCommand(RequestCode.PULL_MESSAGE, language="JAVA", ext_fields=encode_header(header)))
        self.assertEqual(peer.received(), [])
        self.pair.send("b", b"late")
        self.pair.brokers["b"].clock.advance(1)
        (answer,) = peer.received()
        self.assertEqual(offsets(answer), (0, 10_001, 10_000, 10_001, 10_000))

    def test_a_pull_at_an_ended_piece_does_not_wait(self) -> None:
        for body in (b"one", b"two"):
            self.pair.send("a", body)
        self.pair.move()
        waiting = {"sysFlag": str(WHOLE_PULL), "suspendTimeoutMillis": "15000"}
        self.assertEqual(offsets(self.pair.pull("b", 2, **waiting))[:2], (20, 10_000))

    def test_a_pull_commits_only_an_offset_of_the_piece_it_reads(self) -> None:
        self.pair.brokers["b"].controller.groups.find("G")
        self.pair.send("a", b"one")
        self.pair.move()
        for body in (b"two", b"three"):
            self.pair.send("b", body)
        committing = {"sysFlag": str(WHOLE_PULL | PullSysFlag.FLAG_COMMIT_OFFSET)}
        committed = self.pair.brokers["b"].controller.offsets
        self.assertEqual(self.pair.pull("b", 10_000, commitOffset="1", **committing).code, 0)
        self.assertIsNone(committed.query("G", "T", 2))
        self.assertEqual(self.pair.pull("b", 10_000, commitOffset="10001", **committing).code, 0)
        self.assertEqual(committed.query("G", "T", 2), 1)

    def test_offsets_before_and_behind_all_pieces(self) -> None:
        self.pair.send("a", b"one")
        self.assertEqual(offsets(self.pair.pull("a", 5))[:2], (ResponseCode.PULL_NOT_FOUND, 1))
        self.pair.move()
        self.pair.send("b", b"two")
        self.assertEqual(offsets(self.pair.pull("b", 10_009))[:2], (ResponseCode.PULL_OFFSET_MOVED, 10_001))

    def test_committed_offsets_lie_where_their_messages_do(self) -> None:
        for name in ("a", "b"):
            self.pair.brokers[name].controller.groups.find("G")
        self.pair.send("a", b"one")
        code, query = RequestCode.UPDATE_CONSUMER_OFFSET, RequestCode.QUERY_CONSUMER_OFFSET
        self.assertEqual(self.pair.ask("a", code, commitOffset="1"), (0, {}))
        self.assertEqual(self.pair.ask("a", query), (0, {"offset": "1"}))
        self.pair.move()
        self.pair.send("b", b"two")
        self.pair.send("b", b"three")
        self.assertEqual(self.pair.ask("b", query), (0, {"offset": "1"}))
        self.assertEqual(self.pair.ask("b", code, commitOffset="10002"), (0, {}))
        self.assertEqual(self.pair.ask("b", query), (0, {"offset": "10002"}))
        offsets_of = self.pair.brokers["b"].controller.offsets
        self.assertEqual(offsets_of.query("G", "T", 2), 2)
        self.assertEqual(self.pair.ask("b", query, consumerGroup="new")[0], ResponseCode.QUERY_NOT_FOUND)

    def test_ends_and_times_are_those_of_the_whole_queue(self) -> None:
        clock = self.pair.brokers["a"].clock
        self.pair.send("a", b"one")
        began = int(clock.seconds() * 1000)
        clock.advance(10)
        self.pair.move()
        self.pair.send("b", b"two")
        self.assertEqual(self.pair.ask("b", RequestCode.GET_MAX_OFFSET), (0, {"offset": "10001"}))
        self.assertEqual(self.pair.ask("b", RequestCode.GET_MIN_OFFSET), (0, {"offset": "0"}))
        self.assertEqual(self.pair.ask("b", RequestCode.GET_EARLIEST_MSG_STORETIME), (0, {"timestamp": str(began)}))
        search = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        found = [self.pair.ask("b", search, timestamp=str(began + ms))[1]["offset"] for ms in (-1, 0, 1, 10_001)]
        self.assertEqual(found, ["0", "0", "1", "10001"])

    def test_a_request_about_a_queue_as_it_lies_is_not_mapped(self) -> None:
        self.pair.move()
        self.pair.send("b", b"x")
        self.assertEqual(self.pair.ask("b", RequestCode.GET_MAX_OFFSET, queueId="2", lo="false"), (0, {"offset": "1"}))
        self.assertEqual(self.pair.ask("a", RequestCode.GET_MAX_OFFSET, lo="false"), (0, {"offset": "0"}))

    def test_a_queue_id_that_is_none_is_named(self) -> None:
        for wrong in ("--5", "\u0663", "9" * 5000, "x", ""):
            answer = self.pair.peers["b"].ask(RequestCode.GET_MAX_OFFSET, {"topic": "T", "queueId": wrong})
            self.assertEqual(answer.code, ResponseCode.SYSTEM_ERROR)
            self.assertIn(f"queueId: not of type int, -2^31 to 2^31-1, got {wrong!r}"[:60], answer.remark or "")

    def test_what_another_broker_does_not_answer_is_said(self) -> None:
        alone = BrokerInMemory(broker_name="b")
        alone.controller.static_topics.update(
            TopicQueueMappingDetail(topic="T", total_queues=1, bname="b", epoch=1, hosted_queues={0: [ON_A, PLACED]})
        )
        answer = alone.connect().ask(RequestCode.GET_MIN_OFFSET, {"topic": "T", "queueId": "0"})
        self.assertEqual((answer.code, answer.remark), (1, "broker a is not known: this broker has no name server"))

    def test_logical_queues_are_locked_at_their_leader(self) -> None:
        self.pair.tell("a", 2, ON_A)
        self.pair.brokers["a"].controller.static_topics.update(
            TopicQueueMappingDetail(
                topic="T", total_queues=9, bname="a", epoch=3,
                hosted_queues={0: [ON_A], 7: [attrs.evolve(ON_A, queue_id=1)]},
            )
        )  # fmt: skip
        has = self.pair.peers["a"].ask(
            RequestCode.LOCK_BATCH_MQ,
            body=b'{"clientId":"c","consumerGroup":"G","mqSet":['
            b'{"brokerName":"a","queueId":7,"topic":"T"},{"brokerName":"a","queueId":2,"topic":"T"}]}',
        )
        self.assertIn(b'"queueId":7', has.body)
        self.assertNotIn(b'"queueId":2', has.body)

    def test_a_deleted_topic_is_forgotten_and_others_are_served_as_before(self) -> None:
        broker = self.pair.brokers["a"]
        mapped = broker.processors[RequestCode.GET_MAX_OFFSET]
        self.assertEqual(self.pair.peers["a"].ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}).code, 0)
        self.assertEqual(broker.controller.static_topics.topics, {})
        self.assertNotEqual(broker.processors[RequestCode.GET_MAX_OFFSET], mapped)

    def test_queues_are_named_to_name_servers_with_their_places(self) -> None:
        self.pair.move()
        static = self.pair.brokers["b"].controller.static_topics
        self.assertEqual(static.shown()["T"].curr_id_map, {0: 2})
        self.assertEqual(self.pair.brokers["a"].controller.static_topics.shown()["T"].curr_id_map, {})
