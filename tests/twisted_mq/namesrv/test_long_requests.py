"""Requests to a name server with very many topics: in slices, bounded, in order."""

from __future__ import annotations

import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.twisted_mq.namesrv.routes import Link, T, topics, version
from tests.twisted_mq.namesrv.test_namesrv_requests import SUCCESS, NameServer, registered
from twisted_mq.namesrv import kv_config, list_answers
from twisted_mq.namesrv.broker_requests import LARGE_BODY
from twisted_mq.protocol.bodies import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
    TopicList,
    TopicQueueMappingInfo,
    decode_body,
    decode_register_broker,
    encode_body,
    encode_register_broker,
    register_broker_reader,
)
from twisted_mq.protocol.bodies.register_broker import MAX_TOPICS
from twisted_mq.protocol.bodies.register_broker_reader import TOPICS_OF_STEP, read_register_broker
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BodyError, BrokerError
from twisted_mq.protocol.requests.registration_proof import PROOF, registration_proof
from twisted_mq.protocol.wire.command import RemotingCommand

MANY = 20_000
NAMES = sorted(f"t{number}" for number in range(MANY))
LISTED = [
    (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}),
    (RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "C"}),
]


class LargeNameServer(NameServer):
    """Slices run only when `turns` says so."""

    def later(self, code: RequestCode, body: bytes = b"", link: Link | None = None, **fields: Any) -> Any:
        command = RemotingCommand.request(code, {name: str(value) for name, value in fields.items()}, body)
        return self._processors[command.code](link or Link(), command)

    def register_later(self, body: bytes, link: Link | None = None, **fields: Any) -> Any:
        given = {"brokerName": "b1", "brokerAddr": "b1:1", "clusterName": "C", "haServerAddr": "b1:2", "brokerId": 0}
        return self.later(RequestCode.REGISTER_BROKER, body, link, **{**given, **fields})

    def finish(self, later: Any) -> RemotingCommand:
        answers: list[Any] = []
        later.addBoth(answers.append)
        for _ in range(10_000):
            if answers:
                return answers[0]
            self.clock.advance(0)
        raise AssertionError("never answered")


@pytest.fixture
def server(tmp_path: Path) -> LargeNameServer:
    return LargeNameServer(tmp_path)


def body_of(names: list[str], counter: int = 1, *, compressed: bool = False, static: bool = False) -> bytes:
    mapping = TopicQueueMappingInfo(topic="S", bname="b1", total_queues=2, curr_id_map={0: 0, 1: 1})
    wrapper = TopicConfigAndMappingSerializeWrapper(
        topic_config_table=topics(*names),
        data_version=version(counter),
        topic_queue_mapping_info_map={"S": mapping} if static else {},
    )
    return encode_register_broker(RegisterBrokerBody(wrapper, []), compressed)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_registration_of_very_many_topics_is_read_in_steps(compressed, static):
    body = body_of(NAMES, compressed=compressed, static=static)
    steps = read_register_broker(body, compressed, 479)
    assert sum(1 for _ in steps) >= MANY / TOPICS_OF_STEP
    assert decode_register_broker(body, compressed, 479).topic_config_serialize_wrapper.topic_config_table == topics(
        *NAMES
    )


@pytest.mark.parametrize("compressed", [False, True])
def test_registration_of_very_many_topics_lets_others_have_their_turn(server, compressed):
    later = server.register_later(body_of(NAMES, compressed=compressed), compressed=str(compressed).lower())
    assert isinstance(later, Deferred)
    assert server.register(brokerName="b2", brokerAddr="b2:1") == SUCCESS
    assert server.finish(later).code == 0
    assert len(server.state.routes.topics) == MANY + 2
    again = server.register_later(body_of(NAMES, compressed=compressed), compressed=str(compressed).lower())
    assert server.finish(again).code == 0


def test_what_the_same_broker_says_later_comes_later(server):
    link = Link()
    first = server.register_later(body_of(NAMES), link)
    second = server.register_later(body_of(NAMES[:1], 2).replace(b'"perm":6', b'"perm":4'), link)
    assert server.finish(second).code == 0
    assert first.called
    assert server.state.routes.topics[NAMES[0]]["b1"].perm == 4
    assert server.state.routes.live[next(iter(server.state.routes.live))].data_version == version(2)


def test_departure_of_very_many_topics_is_swept_in_slices_before_the_next_registration(tmp_path):
    server = LargeNameServer(tmp_path)
    link = Link()
    server.finish(server.register_later(body_of(NAMES), link))
    link.close()
    server.state.routes.connection_lost(link)
    assert server.state.routes.brokers == {}
    assert server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=NAMES[-1])[0] == ResponseCode.TOPIC_NOT_EXIST
    assert len(server.state.routes.topics) > 0
    assert server.finish(server.register_later(registered())).code == 0
    assert list(server.state.routes.topics) == ["T", "U"]


@pytest.mark.parametrize("body", [body_of(NAMES), body_of(NAMES, compressed=True)], ids=["json", "deflated"])
def test_number_of_topics_is_bounded(monkeypatch, body):
    monkeypatch.setattr(register_broker_reader, "MAX_TOPICS", 100)
    with pytest.raises(BodyError, match="more than 100"):
        decode_register_broker(body, not body.startswith(b"{"), 479)
    assert MAX_TOPICS == 250_000


def test_permissions_of_very_many_topics_change_in_slices(server):
    server.finish(server.register_later(body_of(NAMES)))
    later = server.later(RequestCode.WIPE_WRITE_PERM_OF_BROKER, brokerName="b1")
    assert isinstance(later, Deferred)
    assert server.finish(later).ext_fields == {"wipeTopicCount": str(MANY)}
    assert {queues["b1"].perm for queues in server.state.routes.topics.values()} == {4}


@pytest.mark.parametrize(("code", "fields"), LISTED, ids=["all", "cluster"])
def test_long_list_is_made_once_until_the_table_changes(server, monkeypatch, code, fields):
    made = []
    encode = list_answers._encoded
    monkeypatch.setattr(list_answers, "_encoded", lambda names: made.append(len(names)) or encode(names))
    server.finish(server.register_later(body_of(NAMES)))
    asked = [server.later(code, **fields) for _ in range(60)]
    bodies = {server.finish(one).body for one in asked}
    assert [decode_body(TopicList, body).topic_list for body in bodies] == [NAMES]
    assert bodies == {encode_body(TopicList(NAMES))}
    assert server.later(code, **fields).body in bodies
    assert made == [MANY]
    server.state.routes.delete_topic(NAMES[0])
    assert decode_body(TopicList, server.finish(server.later(code, **fields)).body).topic_list == NAMES[1:]


def test_list_longer_than_a_frame_is_refused(server, monkeypatch):
    monkeypatch.setattr(list_answers, "MAX_BODY_BYTES", 20)
    server.register()
    code, remark, _, _ = server.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    assert (code, remark) == (1, "a list of 23 bytes, more than fit in a frame")


@pytest.mark.parametrize(
    ("code", "size", "fields"),
    [
        (
            RequestCode.QUERY_DATA_VERSION,
            4096,
            {"brokerName": "b", "brokerAddr": "b:1", "clusterName": "C", "brokerId": 0},
        ),
        (RequestCode.REGISTER_TOPIC_IN_NAMESRV, 32 * 1024, {"topic": T}),
        (RequestCode.UPDATE_NAMESRV_CONFIG, 16 * 1024, {}),
    ],
)
def test_body_larger_than_any_of_its_kind_is_refused_unread(server, code, size, fields):
    remark = f"a body of {size + 1} bytes, the limit is {size}"
    assert server.ask(code, b"{" * (size + 1), **fields)[:2] == (ResponseCode.INVALID_PARAMETER, remark)


def test_deflated_texts_are_bounded():
    version_text = encode_body(DataVersion())[:-1] + b" " * 20_000 + b"}"
    inflated = len(version_text).to_bytes(4, "big") + version_text
    with pytest.raises(BodyError, match="dataVersion has 2"):
        decode_register_broker(zlib.compress(inflated), True, 479)


def test_key_values_are_bounded(server, monkeypatch):
    monkeypatch.setattr(kv_config, "MAX_BYTES", 100)
    put = {"namespace": "N", "key": "k"}
    assert server.ask(RequestCode.PUT_KV_CONFIG, **put, value="v" * 60) == SUCCESS
    code, remark, _, _ = server.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="l", value="v" * 60)
    assert code == ResponseCode.SYSTEM_ERROR
    assert remark == (
        "namespace=N key=l: with this value of 60 characters the key-value configuration would have 163 bytes, the limit is 100"
    )
    assert server.ask(RequestCode.PUT_KV_CONFIG, **put, value="w" * 60) == SUCCESS
    assert server.ask(RequestCode.DELETE_KV_CONFIG, **put) == SUCCESS
    assert server.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="l", value="v" * 60) == SUCCESS


def test_key_values_are_answered_in_order_when_they_are_on_disk(tmp_path):
    server = LargeNameServer(tmp_path)
    written: list[Deferred[None]] = []

    def in_thread(function: Any, *arguments: Any) -> Deferred[None]:
        written.append(Deferred())
        return written[-1].addCallback(lambda _: function(*arguments))

    server.state.in_thread = in_thread
    answers = [server.later(RequestCode.PUT_KV_CONFIG, namespace="N", key="k", value=str(one)) for one in range(3)]
    for number, answer in enumerate(answers):
        for _ in range(5):
            server.clock.advance(0)
        assert (len(written), answer.called) == (number + 1, False)
        written[-1].callback(None)
        assert server.finish(answer).code == 0
        assert server.state.kv_config.get("N", "k") == str(number)


SECRET = "long and random"


@pytest.mark.parametrize("code", [RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER])
def test_registration_needs_the_shared_secret_where_there_is_one(tmp_path, code):
    server = NameServer(tmp_path, registration_shared_secret=SECRET)
    fields = {"brokerName": "b1", "brokerAddr": "b1:1", "clusterName": "C", "haServerAddr": "b1:2", "brokerId": "0"}
    command = RemotingCommand.request(code, fields, registered())
    refused = server.answer_to(command)
    needed = "registrationProof: registrationSharedSecret is required here, "
    assert (refused.code, refused.remark) == (ResponseCode.NO_PERMISSION, needed + "it is missing")
    command.ext_fields[PROOF] = registration_proof(command, "another")
    assert server.answer_to(command).remark == needed + "it differs"
    command.ext_fields[PROOF] = registration_proof(command, SECRET)
    assert server.answer_to(command).code == 0
    command.ext_fields["brokerAddr"] = "6.6.6.6:1"
    assert server.answer_to(command).code == ResponseCode.NO_PERMISSION
    assert "registrationSharedSecret" not in server.ask(RequestCode.GET_NAMESRV_CONFIG)[3].decode()


def test_stranger_does_not_unregister_a_living_broker(server):
    link = Link()
    server.register_later(registered(), link)
    gone = {"brokerName": "b1", "brokerAddr": "b1:1", "clusterName": "C", "brokerId": 0}
    with pytest.raises(BrokerError, match="its connection is alive"):
        server.later(RequestCode.UNREGISTER_BROKER, **gone)
    assert server.later(RequestCode.UNREGISTER_BROKER, link=link, **gone).code == 0


def test_small_bodies_that_inflate_to_4_mib_are_read_two_at_a_time(server):
    """The bodies come under many broker names."""
    bomb = zlib.compress(bytes(4_000_000), 9)
    assert len(bomb) < LARGE_BODY
    tracemalloc.start()
    try:
        later = [
            server.register_later(bomb, brokerName=f"b{number}", compressed="true").addErrback(lambda why: why.type)
            for number in range(32)
        ]
        refusals = [server.finish(one) for one in later]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refusals == [BodyError] * 32
    assert most < 40_000_000
    assert (
        server.register(registered(compressed=True), brokerName="b99", brokerAddr="b99:1", compressed="true") == SUCCESS
    )
