"""Every call as a gRPC client makes it, over a real connection: to a broker itself, and to a proxy before it."""

from __future__ import annotations

import gzip
import hashlib
import time
import zlib
from collections.abc import Iterator

import grpc
import pytest

from tests.support.grpc_client import ENDPOINTS, GrpcClient, code, message
from tests.support.proxied_server import MODES, ProxiedServer
from twisted_mq.blocking import ConsumeFromWhere, ConsumerOptions, Message, Producer, PushConsumer
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig
from twisted_mq.proxy import messages as v2
from twisted_mq.testing import EmbeddedServer


@pytest.fixture(scope="module", params=list(MODES))
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    # transactions are asked about at once, popped messages come back quickly
    options = {"transaction_time_out": 500, "transaction_check_interval": 300, "recall_message_enable": True}
    with MODES[request.param](store="memory", broker_options=options) as server:
        yield server


@pytest.fixture
def client(server: EmbeddedServer) -> Iterator[GrpcClient]:
    with GrpcClient(server.grpc) as client:
        yield client


@pytest.fixture
def topic(server: EmbeddedServer, request: pytest.FixtureRequest) -> str:
    return server.new_topic(request.node.originalname)


def typed(server: EmbeddedServer, topic: str, message_type: str) -> str:
    """Give a topic a message type."""
    config = TopicConfig(topic, 4, 4, attributes={"message.type": message_type})
    server._thread.call(lambda: server._controller.topics.update([config]))
    return topic


def grouped(server: EmbeddedServer, **settings: object) -> str:
    """A consumer group with these settings."""
    config = SubscriptionGroupConfig(**settings)  # type: ignore[arg-type]
    server._thread.call(lambda: server._controller.groups.update(config))
    return config.group_name


def test_route_has_all_queues_at_this_port(server, client, topic):
    host, _, port = server.grpc.rpartition(":")
    endpoints = {"scheme": 1, "addresses": [{"host": host, "port": int(port)}]}
    answer = client.call("QueryRoute", topic={"name": topic}, endpoints=endpoints)
    queues = [
        (one.id, one.permission, one.broker.name, one.broker.endpoints.addresses[0].host,
         one.broker.endpoints.addresses[0].port, list(one.accept_message_types))
        for one in answer.message_queues
    ]  # fmt: skip
    assert code(answer) == "OK"
    assert queues == [(number, v2.Permission.READ_WRITE, "broker-a", host, int(port), [1]) for number in range(4)]


def test_assignment_is_the_whole_broker_and_each_queue_for_an_ordered_group(server, client, topic):
    asked = {"topic": {"name": topic}, "endpoints": ENDPOINTS}
    plain = client.call("QueryAssignment", group={"name": "plain"}, **asked)
    grouped(server, group_name="ordered-assignment", consume_message_orderly=True)
    ordered = client.call("QueryAssignment", group={"name": "ordered-assignment"}, **asked)
    assert [one.message_queue.id for one in plain.assignments] == [-1]
    assert [one.message_queue.id for one in ordered.assignments] == [0, 1, 2, 3]


def test_settings_come_back_with_the_servers_laid_over(server, client, topic):
    group = grouped(server, group_name="settled", consume_message_orderly=True, retry_max_times=3)
    answer = client.settle_consumer(topic, group, "a || b")
    settings = answer.settings
    assert answer.status.code == v2.Code.OK
    assert (settings.subscription.fifo, settings.subscription.receive_batch_size) == (True, 32)
    assert settings.backoff_policy.max_attempts == 4
    assert [one.seconds for one in settings.backoff_policy.customized_backoff.next][:3] == [1, 5, 10]
    assert settings.subscription.subscriptions[0].expression.expression == "a || b"
    with GrpcClient(server.grpc) as producer:
        settings = producer.settle_producer(topic).settings
        assert (settings.publishing.validate_message_type, settings.publishing.max_body_size) == (True, 4 << 20)
        assert settings.backoff_policy.max_attempts == 3


def test_a_consumer_whose_settings_do_not_come_receives_by_what_its_call_implies(server, client, topic):
    """So does Python's client 5.1.2 for up to ten minutes after its Telemetry stream was cut."""
    client.call("SendMessage", messages=[message(topic, b"hello", message_id="01ABC")])
    with GrpcClient(server.grpc) as consumer:
        [found] = consumer.receive(topic, "unsettled")
        assert found.body == b"hello"
        assert code(consumer.call("Heartbeat", group={"name": "unsettled"})) == "OK"


def test_message_has_all_it_was_sent_with_when_it_is_received(client, topic):
    client.settle_consumer(topic, "all")
    sent = client.call(
        "SendMessage",
        messages=[
            message(
                topic, b"hello", {"colour": "red"}, message_id="01ABC", tag="new", keys=["k1", "k2"],
                message_type=1, born_host="me", born_timestamp={"seconds": 1_700_000_000}, trace_context="trace",
            )
        ],
    )  # fmt: skip
    assert (code(sent), sent.entries[0].message_id, code(sent.entries[0])) == ("OK", "01ABC", "OK")
    [found] = client.receive(topic, "all")
    system = found.system_properties
    assert (found.topic.name, found.body, dict(found.user_properties)) == (topic, b"hello", {"colour": "red"})
    assert (system.message_id, system.tag, list(system.keys), system.born_host) == ("01ABC", "new", ["k1", "k2"], "me")
    assert (system.message_type, system.delivery_attempt, system.trace_context) == (v2.MessageType.NORMAL, 1, "trace")
    assert system.born_timestamp.seconds == 1_700_000_000
    assert system.body_digest.checksum == hashlib.md5(b"hello").hexdigest().upper()
    assert system.queue_offset == sent.entries[0].offset
    entry = {"message_id": "01ABC", "receipt_handle": system.receipt_handle}
    acknowledged = client.call("AckMessage", group={"name": "all"}, topic={"name": topic}, entries=[entry])
    assert (code(acknowledged), [code(one) for one in acknowledged.entries]) == ("OK", ["OK"])


def test_batch_has_an_entry_for_each_message(client, topic):
    client.settle_consumer(topic, "batch")
    answer = client.send(topic, b"1", b"2", b"3")
    assert [code(one) for one in answer.entries] == ["OK"] * 3
    assert sorted(one.body for one in client.receive(topic, "batch")) == [b"1", b"2", b"3"]


def test_batch_whose_messages_fare_differently_has_the_status_of_each(client, topic):
    # the broker refuses properties that do not fit into a record; the limit of user properties is below it
    answer = client.call(
        "SendMessage",
        messages=[message(topic, b"1"), message(topic, b"2", trace_context="x" * 40_000), message(topic, b"3")],
    )
    assert code(answer) == "MULTIPLE_RESULTS"
    assert [code(one) for one in answer.entries] == ["OK", "INTERNAL_SERVER_ERROR", "OK"]


def test_messages_pass_between_grpc_and_remoting_both_ways_with_their_properties(server, client, topic):
    client.settle_consumer(topic, "remoting-to-grpc")
    with Producer(server.namesrv, group="remoting") as producer:
        producer.send(Message(topic, b"from remoting", tags="t", keys=["k"], properties={"a": "b"}))
    [found] = client.receive(topic, "remoting-to-grpc")
    assert (found.body, found.system_properties.tag, dict(found.user_properties)) == (b"from remoting", "t", {"a": "b"})
    client.send(topic, b"from grpc", tag="t", keys=["k"])
    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
    with PushConsumer(server.namesrv, group="grpc-to-remoting", topics={topic: "*"}, options=options) as consumer:
        bodies = {}
        for one in consumer.messages(timeout=20):
            bodies[one.body] = (one.tags, one.keys)
            one.ack()
            if len(bodies) == 2:
                break
    assert bodies[b"from grpc"] == ("t", ["k"])


def test_gzip_body_is_read_by_clients_of_both_kinds_and_a_wrong_digest_is_refused(server, client, topic):
    client.settle_consumer(topic, "packed")
    packed = gzip.compress(b"text " * 1000)
    digest = {"type": 1, "checksum": f"{zlib.crc32(packed):X}"}
    assert code(client.send(topic, packed, body_encoding=2, body_digest=digest)) == "OK"
    [found] = client.receive(topic, "packed")
    assert (found.body, found.system_properties.body_encoding) == (b"text " * 1000, v2.Encoding.IDENTITY)
    assert server.messages(topic)[-1].body == b"text " * 1000
    refused = client.send(topic, b"other", body_digest=digest)
    assert code(refused) == "MESSAGE_CORRUPTED"


def test_messages_of_one_group_go_to_one_queue_and_others_round(client, server, topic):
    typed(server, topic, "FIFO")
    for number in range(12):
        assert code(client.send(topic, b"%d" % number, message_group=f"group-{number % 3}", message_type=2)) == "OK"
    places: dict[str, set[int]] = {}
    for one in server.messages(topic):
        places.setdefault(one.properties["__SHARDINGKEY"], set()).add(one.queue_id)
    assert {name: len(queues) for name, queues in places.items()} == {"group-0": 1, "group-1": 1, "group-2": 1}
    other = server.new_topic("round")
    for _ in range(8):
        client.send(other, b"x")
    assert sorted(one.queue_id for one in server.messages(other)) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_type_that_is_not_the_topics_is_refused(client, server, topic):
    fifo, mixed = typed(server, server.new_topic("fifo"), "FIFO"), typed(server, server.new_topic("mixed"), "MIXED")
    assert code(client.send(topic, b"x", message_group="g")) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
    assert code(client.send(fifo, b"x")) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
    assert code(client.send(mixed, b"x")) == "OK"
    recalled = client.call("RecallMessage", topic={"name": fifo}, recall_handle="x")
    assert code(recalled) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
    assert code(client.call("RecallMessage", topic={"name": mixed}, recall_handle="x")) == "BAD_REQUEST"


def test_messages_with_a_priority_are_received_from_the_highest_to_the_lowest(client, server, topic):
    typed(server, topic, "PRIORITY")
    assert code(client.send(topic, b"x")) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
    assert code(client.send(server.new_topic("plain"), b"x", priority=1)) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
    route = client.call("QueryRoute", topic={"name": topic}, endpoints=ENDPOINTS)
    assert {one for queue in route.message_queues for one in queue.accept_message_types} == {v2.MessageType.PRIORITY}
    for priority in (1, 3, 0, 2, 9):
        assert code(client.send(topic, b"%d" % priority, priority=priority, message_type=6)) == "OK"
    client.settle_consumer(topic, "by-priority")
    found = [one for _ in range(5) for one in client.receive(topic, "by-priority", batch_size=1)]
    assert [one.body for one in found] == [b"3", b"9", b"2", b"1", b"0"]
    system = found[1].system_properties
    assert (system.priority, system.queue_id, system.message_type) == (9, 3, v2.MessageType.PRIORITY)
    assert "_SYS_MSG_PRIORITY_" not in found[1].user_properties


@pytest.mark.parametrize(
    ("system", "body", "expected"),
    [
        ({"tag": " "}, b"x", "ILLEGAL_MESSAGE_TAG"),
        ({"tag": "a|b"}, b"x", "ILLEGAL_MESSAGE_TAG"),
        ({"keys": ["a\nb"]}, b"x", "ILLEGAL_MESSAGE_KEY"),
        ({"message_group": ""}, b"x", "ILLEGAL_MESSAGE_GROUP"),
        ({"message_group": "g" * 64}, b"x", "ILLEGAL_MESSAGE_GROUP"),
        ({"message_id": " "}, b"x", "ILLEGAL_MESSAGE_ID"),
        ({"message_id": "a\x02TAGS\x01forged"}, b"x", "ILLEGAL_MESSAGE_ID"),
        ({"trace_context": "a\x02TAGS\x01forged"}, b"x", "BAD_REQUEST"),
        ({"born_host": "a\x02TAGS\x01forged"}, b"x", "BAD_REQUEST"),
        ({"priority": -1}, b"x", "BAD_REQUEST"),
        ({"user_properties": {"_SYS_MSG_PRIORITY_": "1"}}, b"x", "ILLEGAL_MESSAGE_PROPERTY_KEY"),
        ({"user_properties": {"KEYS": "x"}}, b"x", "ILLEGAL_MESSAGE_PROPERTY_KEY"),
        ({"user_properties": {"a": "\x01"}}, b"x", "ILLEGAL_MESSAGE_PROPERTY_KEY"),
        ({"user_properties": {f"n{number}": "" for number in range(129)}}, b"x", "MESSAGE_PROPERTIES_TOO_LARGE"),
        ({"user_properties": {"a": "v" * 16_384}}, b"x", "MESSAGE_PROPERTIES_TOO_LARGE"),
        ({"delivery_timestamp": {"seconds": 1 << 33}}, b"x", "ILLEGAL_DELIVERY_TIME"),
        ({"orphaned_transaction_recovery_duration": {"seconds": 3601}}, b"x", "BAD_REQUEST"),
        ({}, b"", "MESSAGE_BODY_EMPTY"),
        ({}, bytes((4 << 20) + 1), "MESSAGE_BODY_TOO_LARGE"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_message_that_cannot_be_sent_has_its_status(client, server, system, body, expected):
    topic = server.new_topic("refused")
    assert code(client.send(topic, body, **system)) == expected
    assert list(server.messages(topic)) == []


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("SendMessage", {}, "MESSAGE_CORRUPTED"),
        ("SendMessage", {"messages": [message("unknown", b"x")]}, "TOPIC_NOT_FOUND"),
        ("SendMessage", {"messages": [message("a", b"x"), message("b", b"x")]}, "MESSAGE_CORRUPTED"),
        ("SendMessage", {"messages": [message("TBW102", b"x")]}, "ILLEGAL_TOPIC"),
        ("QueryRoute", {"topic": {"name": "no such/topic"}}, "ILLEGAL_TOPIC"),
        ("QueryRoute", {"topic": {"name": "unknown"}}, "TOPIC_NOT_FOUND"),
        ("QueryAssignment", {"topic": {"name": "a"}, "group": {"name": "CID_RMQ_SYS_TRANS"}}, "ILLEGAL_CONSUMER_GROUP"),
        ("Heartbeat", {}, "UNRECOGNIZED_CLIENT_TYPE"),
        ("NotifyClientTermination", {}, "UNRECOGNIZED_CLIENT_TYPE"),
        ("EndTransaction", {"topic": {"name": "a"}, "transaction_id": " "}, "INVALID_TRANSACTION_ID"),
        ("EndTransaction", {"topic": {"name": "a"}, "transaction_id": "x"}, "INTERNAL_SERVER_ERROR"),
        ("AckMessage", {"topic": {"name": "a"}, "group": {"name": "g"}}, "BAD_REQUEST"),
        (
            "AckMessage",
            {"topic": {"name": "a"}, "group": {"name": "g"}, "entries": [{"receipt_handle": "1 2 3"}]},
            "INVALID_RECEIPT_HANDLE",
        ),
        (
            "ChangeInvisibleDuration",
            {
                "topic": {"name": "a"},
                "group": {"name": "g"},
                "receipt_handle": "0 1 1 0 0 broker-a 0 0 0",
                "invisible_duration": {"seconds": 1},
            },
            "INVALID_RECEIPT_HANDLE",
        ),
        (
            "ChangeInvisibleDuration",
            {"topic": {"name": "a"}, "group": {"name": "g"}, "invisible_duration": {"seconds": 43_201}},
            "ILLEGAL_INVISIBLE_TIME",
        ),
        (
            "ForwardMessageToDeadLetterQueue",
            {"topic": {"name": "a"}, "group": {"name": "g"}, "receipt_handle": "a b c d e f g h"},
            "INVALID_RECEIPT_HANDLE",
        ),
    ],
)
def test_request_that_is_wrong_has_its_status(client, name, fields, expected):
    assert code(client.call(name, **fields)) == expected


@pytest.mark.parametrize(
    ("name", "parts", "part"), [("SendMessage", "messages", {}), ("AckMessage", "entries", {"receipt_handle": "x"})]
)
def test_call_of_more_than_1000_parts_is_refused_as_a_whole(server, client, topic, name, parts, part):
    names = {} if name == "SendMessage" else {"topic": {"name": topic}, "group": {"name": "many"}}
    one = part or message(topic, b"x")
    answer = client.call(name, **names, **{parts: [one] * 1001})
    assert (code(answer), answer.status.message) == ("BAD_REQUEST", f"{parts}: 1001 in one call, the limit is 1000")
    assert len(answer.entries) == 0 and server.messages(topic) == []
    assert len(client.call(name, **names, **{parts: [one] * 1000}).entries) == 1000


def test_namespaces_name_nothing(server, topic):
    """Topics and groups go by their names, as at Apache's proxy. A message has its topic's name as its consumer asked for it."""
    for number, name in enumerate((topic, typed(server, f"n%{topic}", "NORMAL"))):
        with GrpcClient(server.grpc, **{"x-mq-namespace": "n"}) as client:
            resource = {"name": name, "resource_namespace": "n"}
            group = {"name": f"named-{number}", "resource_namespace": "n"}
            client.settle_consumer(name, group["name"])
            one = message(name, b"x")
            one.topic.resource_namespace = "n"
            assert code(client.call("SendMessage", messages=[one])) == "OK"
            found: list[object] = []
            while not found:
                answers = client.receive_all(
                    group=group, message_queue={"topic": resource}, invisible_duration={"seconds": 30},
                    filter_expression={"expression": "*"},
                )  # fmt: skip
                found = [one.message for one in answers if one.WhichOneof("content") == "message"]
            assert (found[0].topic.name, found[0].topic.resource_namespace) == (name, "")
            entry = {"receipt_handle": found[0].system_properties.receipt_handle, "message_id": "01"}
            assert code(client.call("AckMessage", group=group, topic=found[0].topic, entries=[entry])) == "OK"
        assert [one.topic for one in server.messages(name)] == [name]


def test_call_without_client_id_is_refused_in_its_answer(server):
    with GrpcClient(server.grpc, **{"x-mq-client-id": ""}) as nobody:
        assert code(nobody.call("QueryRoute", topic={"name": "T"})) == "CLIENT_ID_REQUIRED"


def test_calls_that_are_not_served_are_unimplemented(client):
    with pytest.raises(grpc.RpcError) as refused:
        client.call("SyncLiteSubscription")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def queue_of(topic: str, queue_id: int = 0, broker: str = "broker-a") -> dict[str, object]:
    return {"topic": {"name": topic}, "id": queue_id, "broker": {"name": broker}}


def test_queue_is_pulled_from_an_offset_on(server, client, topic):
    client.settle_consumer(topic, "pulling")
    for number in range(8):
        client.send(topic, b"%d" % number, tag="ab"[number // 4])
    queue = queue_of(topic, server.messages(topic)[0].queue_id)
    asked = {"group": {"name": "pulling"}, "message_queue": queue, "batch_size": 32}
    answers = client.pull_all(offset=0, **asked)
    found = [one.message for one in answers if one.WhichOneof("content") == "message"]
    assert (code(answers[0]), len(found), answers[-1].next_offset) == ("OK", 2, 2)
    assert [one.system_properties.queue_offset for one in found] == [0, 1]
    assert not found[0].system_properties.HasField("receipt_handle")
    second = client.pull_all(offset=0, filter_expression={"type": 1, "expression": "b"}, **asked)
    assert [one.message.body for one in second if one.WhichOneof("content") == "message"] == [found[1].body]
    nothing = client.pull_all(offset=2, **asked)
    assert (code(nothing[0]), nothing[-1].next_offset) == ("MESSAGE_NOT_FOUND", 2)
    beyond = client.pull_all(offset=99, **asked)
    assert (code(beyond[0]), beyond[-1].next_offset) == ("ILLEGAL_OFFSET", 2)


def test_pull_waits_for_a_message(server, client, topic):
    client.settle_consumer(topic, "pulling")
    asked = {"group": {"name": "pulling"}, "message_queue": queue_of(topic), "long_polling_timeout": {"seconds": 15}}
    answers = client.pulling(20, **asked)
    for _ in range(4):
        client.send(topic, b"at last")
    assert [one.message.body for one in answers if one.WhichOneof("content") == "message"] == [b"at last"]


def test_offsets_are_committed_and_found(server, client, topic):
    client.settle_consumer(topic, "offsets")
    for number in range(4):
        client.send(topic, b"%d" % number)
    queue = queue_of(topic)
    names = {"group": {"name": "offsets"}, "message_queue": queue}
    assert code(client.call("GetOffset", **names)) == "OFFSET_NOT_FOUND"
    assert code(client.call("UpdateOffset", offset=1, **names)) == "OK"
    answer = client.call("GetOffset", **names)
    assert (code(answer), answer.offset) == ("OK", 1)
    assert server._controller.offsets.query("offsets", topic, 0) == 1
    ends = [client.call("QueryOffset", message_queue=queue, query_offset_policy=policy) for policy in (0, 1)]
    assert [(code(one), one.offset) for one in ends] == [("OK", 0), ("OK", 1)]
    for seconds, expected in ((1, 0), (4_000_000_000, 1)):
        by_time = client.call("QueryOffset", message_queue=queue, query_offset_policy=2, timestamp={"seconds": seconds})
        assert (code(by_time), by_time.offset) == ("OK", expected)


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("QueryOffset", {"message_queue": queue_of("{topic}", 99)}, "BAD_REQUEST"),
        ("QueryOffset", {"message_queue": queue_of("{topic}", 0, "broker-z")}, "BAD_REQUEST"),
        ("QueryOffset", {"message_queue": queue_of("{topic}"), "query_offset_policy": 2}, "BAD_REQUEST"),
        ("QueryOffset", {"message_queue": queue_of("unknown")}, "TOPIC_NOT_FOUND"),
        ("GetOffset", {"message_queue": queue_of("{topic}")}, "ILLEGAL_CONSUMER_GROUP"),
        ("UpdateOffset", {"message_queue": queue_of("{topic}"), "group": {"name": "g"}, "offset": -1}, "ILLEGAL_OFFSET"),
    ],
)  # fmt: skip
def test_offset_that_is_wrong_has_its_status(client, topic, name, fields, expected):
    queue = {**fields["message_queue"]}
    queue["topic"] = {"name": queue["topic"]["name"].format(topic=topic)}
    assert code(client.call(name, **{**fields, "message_queue": queue})) == expected


def test_receive_waits_for_a_message(client, topic):
    client.settle_consumer(topic, "waiting")
    answers = client.receiving(
        20, group={"name": "waiting"}, message_queue={"topic": {"name": topic}}, batch_size=1,
        invisible_duration={"seconds": 30}, long_polling_timeout={"seconds": 15},
    )  # fmt: skip
    while not client.call("SendMessage", messages=[message(topic, b"at last")]).entries:
        pass
    kinds = [(one.WhichOneof("content"), one.message.body) for one in answers]
    assert kinds == [("status", b""), ("message", b"at last"), ("delivery_timestamp", b"")]


def test_receive_without_messages_ends_with_message_not_found(client, topic):
    client.settle_consumer(topic, "nothing")
    answers = client.receive_all(
        group={"name": "nothing"}, message_queue={"topic": {"name": topic}}, batch_size=1,
        invisible_duration={"seconds": 30}, long_polling_timeout={"seconds": 1},
    )  # fmt: skip
    assert code(answers[0]) == "MESSAGE_NOT_FOUND"
    assert answers[1].WhichOneof("content") == "delivery_timestamp"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"invisible_duration": {"seconds": 9}}, "ILLEGAL_INVISIBLE_TIME"),
        ({"invisible_duration": {"seconds": 43_201}}, "ILLEGAL_INVISIBLE_TIME"),
        (
            {"invisible_duration": {"seconds": 10}, "filter_expression": {"expression": "||"}},
            "ILLEGAL_FILTER_EXPRESSION",
        ),
        (
            {"invisible_duration": {"seconds": 10}, "filter_expression": {"type": 2, "expression": "a ="}},
            "ILLEGAL_FILTER_EXPRESSION",
        ),
    ],
)
def test_receive_that_is_wrong_has_its_status(client, server, fields, expected):
    topic = server.new_topic("receive")
    client.settle_consumer(topic, "wrong")
    answers = client.receive_all(group={"name": "wrong"}, message_queue={"topic": {"name": topic}}, **fields)
    assert [code(one) for one in answers] == [expected]


def test_receive_with_too_short_a_deadline_is_refused(client, topic):
    client.settle_consumer(topic, "hasty")
    answers = client.receive_all(
        3, group={"name": "hasty"}, message_queue={"topic": {"name": topic}}, invisible_duration={"seconds": 10}
    )
    assert [code(one) for one in answers] == ["ILLEGAL_POLLING_TIME"]


def test_receive_that_comes_before_the_settings_waits_for_them(server, topic):
    with GrpcClient(server.grpc) as early:
        early.send(topic, b"x")
        answers = early.receiving(
            group={"name": "early"}, message_queue={"topic": {"name": topic}}, invisible_duration={"seconds": 10}
        )
        early.settle_consumer(topic, "early")
        assert [one.message.body for one in answers if one.WhichOneof("content") == "message"] == [b"x"]


def test_filters_by_tag_and_by_sql_select(server, client, topic):
    client.settle_consumer(topic, "filters")
    client.send(topic, b"1", tag="a", user_properties={"n": "1"})
    client.send(topic, b"2", tag="b", user_properties={"n": "2"})
    by_tag = client.receive(topic, "by-tag", filter_expression={"type": 1, "expression": "b || c"})
    by_sql = client.receive(topic, "by-sql", filter_expression={"type": 2, "expression": "n < 2"})
    assert ([one.body for one in by_tag], [one.body for one in by_sql]) == ([b"2"], [b"1"])


def test_call_that_is_cancelled_leaves_the_message_to_the_next_one(client, topic):
    client.settle_consumer(topic, "cancelled")
    fields = {
        "group": {"name": "cancelled"}, "message_queue": {"topic": {"name": topic}},
        "invisible_duration": {"seconds": 30}, "long_polling_timeout": {"seconds": 15},
    }  # fmt: skip
    given_up = client.receiving(20, **fields)
    client.call("Heartbeat")
    given_up.cancel()
    client.call("Heartbeat")  # the reset came before it
    client.send(topic, b"x")
    assert [one.body for one in client.receive(topic, "cancelled")] == [b"x"]


def test_changed_invisible_time_brings_the_message_back_and_the_old_handle_is_worth_nothing(client, topic):
    client.settle_consumer(topic, "changed")
    client.send(topic, b"x")
    [first] = client.receive(topic, "changed")
    names = {"group": {"name": "changed"}, "topic": {"name": topic}}
    handle = first.system_properties.receipt_handle
    changed = client.call(
        "ChangeInvisibleDuration", receipt_handle=handle, message_id=first.system_properties.message_id,
        invisible_duration={"seconds": 1}, **names,
    )  # fmt: skip
    assert code(changed) == "OK"
    assert changed.receipt_handle != handle
    again: list[object] = []
    end = time.monotonic() + 60
    while not again and time.monotonic() < end:
        again = client.receive(topic, "changed", long_polling_timeout={"seconds": 5})
    assert [(one.body, one.system_properties.delivery_attempt) for one in again] == [(b"x", 2)]


def test_message_given_up_is_a_dead_letter(server, client, topic):
    client.settle_consumer(topic, "given-up")
    client.send(topic, b"bad", tag="t")
    [found] = client.receive(topic, "given-up")
    system = found.system_properties
    answer = client.call(
        "ForwardMessageToDeadLetterQueue", group={"name": "given-up"}, topic={"name": topic},
        receipt_handle=system.receipt_handle, message_id=system.message_id, delivery_attempt=1, max_delivery_attempts=1,
    )  # fmt: skip
    assert code(answer) == "OK"
    assert [one.body for one in server.dead_letters("given-up")] == [b"bad"]


def test_ordered_group_gets_a_queue_in_order_and_the_next_after_the_ack(server, client, topic):
    typed(server, topic, "FIFO")
    group = grouped(server, group_name="in-order", consume_message_orderly=True)
    client.settle_consumer(topic, group)
    for number in range(4):
        client.send(topic, b"%d" % number, message_group="one")
    taken = []
    while len(taken) < 4:
        for one in client.receive(topic, group, batch_size=2):
            taken.append(one.body)
            entry = {
                "message_id": one.system_properties.message_id,
                "receipt_handle": one.system_properties.receipt_handle,
            }
            assert (
                code(client.call("AckMessage", group={"name": group}, topic={"name": topic}, entries=[entry])) == "OK"
            )
    assert taken == [b"0", b"1", b"2", b"3"]


def test_delayed_message_comes_at_its_time_and_can_be_recalled(server, client, topic):
    typed(server, topic, "DELAY")
    client.settle_consumer(topic, "delayed")
    soon = int(time.time()) + 2
    sent = client.send(topic, b"soon", delivery_timestamp={"seconds": soon}, message_type=3)
    far = client.send(topic, b"never", delivery_timestamp={"seconds": soon + 3600}, message_type=3)
    assert (code(sent), code(far)) == ("OK", "OK")
    recalled = client.call("RecallMessage", topic={"name": topic}, recall_handle=far.entries[0].recall_handle)
    assert (code(recalled), recalled.message_id) == ("OK", far.entries[0].message_id)
    [found] = client.receive(topic, "delayed", long_polling_timeout={"seconds": 15})
    assert found.body == b"soon"
    assert found.system_properties.store_timestamp.seconds >= soon


def test_transaction_is_seen_once_it_is_committed(server, client, topic):
    typed(server, topic, "TRANSACTION")
    client.settle_producer(topic)
    for body, resolution in ((b"yes", 1), (b"no", 2)):
        entry = client.send(topic, body, message_type=4).entries[0]
        ended = client.call(
            "EndTransaction", topic={"name": topic}, message_id=entry.message_id, transaction_id=entry.transaction_id,
            resolution=resolution, source=1,
        )  # fmt: skip
        assert code(ended) == "OK"
    assert [one.body for one in server.messages(topic)] == [b"yes"]


def test_producer_is_asked_about_a_transaction_that_it_left_open(server, client, topic):
    typed(server, topic, "TRANSACTION")
    client.settle_producer(topic)
    sent = client.send(topic, b"left", message_type=4, orphaned_transaction_recovery_duration={"seconds": 1})
    asked = client.told.get(timeout=60).recover_orphaned_transaction_command
    assert (asked.message.body, asked.message.topic.name) == (b"left", topic)
    assert asked.transaction_id == sent.entries[0].transaction_id
    ended = client.call(
        "EndTransaction", topic={"name": topic}, message_id=asked.message.system_properties.message_id,
        transaction_id=asked.transaction_id, resolution=1, source=2,
    )  # fmt: skip
    assert code(ended) == "OK"
    assert [one.body for one in server.messages(topic)] == [b"left"]


def test_broker_knows_the_client_until_it_says_goodbye(server, client, topic):
    if isinstance(server, ProxiedServer):
        pytest.skip("consumers are registered at the proxy alone, as with Apache's")
    consumers = server._controller.consumers
    client.settle_consumer(topic, "member", "a")
    assert code(client.call("Heartbeat", group={"name": "member"}, client_type=3)) == "OK"
    info = consumers.groups["member"]
    assert (info.client_ids(), [one.language for one in info.clients.values()]) == ([client.client_id], ["PYTHON"])
    assert info.subscriptions[topic].sub_string == "a"
    assert code(client.call("NotifyClientTermination", group={"name": "member"})) == "OK"
    assert "member" not in consumers.groups


def test_new_telemetry_stream_takes_the_place_of_the_old(server, client, topic):
    client.settle_producer(topic)
    first = client.telemetry
    with GrpcClient(server.grpc, client.client_id) as again:
        again.settle_producer(topic)
        assert first.code() is grpc.StatusCode.OK


def test_settings_of_neither_producer_nor_consumer_end_the_stream(client):
    with pytest.raises(grpc.RpcError) as refused:
        client.settle(client_type=1)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_messages_of_a_push_consumer_come_back_when_it_is_gone(server, client, topic):
    client.settle_consumer(topic, "gone", client_type="PUSH_CONSUMER")
    client.send(topic, b"x")
    assert len(client.receive(topic, "gone", auto_renew=True)) == 1
    assert code(client.call("NotifyClientTermination", group={"name": "gone"})) == "OK"
    with GrpcClient(server.grpc) as other:
        other.settle_consumer(topic, "gone")
        again: list[object] = []
        end = time.monotonic() + 45
        while not again and time.monotonic() < end:  # invisible for 60 s otherwise
            again = other.receive(topic, "gone", long_polling_timeout={"seconds": 5})
    assert [one.body for one in again] == [b"x"]


def test_messages_of_a_client_whose_connection_breaks_come_back(server, topic):
    with GrpcClient(server.grpc) as gone:
        gone.settle_consumer(topic, "broken", client_type="PUSH_CONSUMER")
        gone.send(topic, b"x")
        assert len(gone.receive(topic, "broken", auto_renew=True)) == 1
    with GrpcClient(server.grpc) as other:
        other.settle_consumer(topic, "broken")
        again: list[object] = []
        end = time.monotonic() + 45
        while not again and time.monotonic() < end:  # invisible for 60 s otherwise
            again = other.receive(topic, "broken", long_polling_timeout={"seconds": 5})
    assert [one.body for one in again] == [b"x"]
