"""Requests to a name server: replays of what Apache's answered, and each request's own rules."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from twisted.internet import defer
from twisted.internet.task import Clock

from tests.support import captures
from tests.twisted_mq.namesrv.routes import Link, T, U, queue, topics, version
from twisted_mq.namesrv.kv_config import KVConfig
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.processor import REQUESTS, processors
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.namesrv.state import NamesrvState
from twisted_mq.protocol.bodies import (
    DataVersion,
    KVTable,
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigSerializeWrapper,
    TopicList,
    TopicRouteData,
    decode_body,
    encode_body,
    encode_register_broker,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, HeaderError, ProtocolError
from twisted_mq.protocol.requests.registry import REQUESTS as REGISTRY
from twisted_mq.protocol.text import fastjson
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.protocol.wire.header_fields import wire_fields
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.turns import Turns

LINK = Link()


class NameServer:
    """A name server without a socket; `ask` gives what a client would get."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock = Clock()
        self.told: list[Any] = []
        self.options = NamesrvOptions(
            kv_config_path=str(folder / "kvConfig.json"),
            config_store_path=str(folder / "namesrv.properties"),
            **settings,
        )
        turns = Turns(Rotation(self.clock))
        self.state = NamesrvState(
            options=self.options,
            routes=RouteTable(later=turns.must_run),
            turns=turns,
            in_thread=defer.execute,
            kv_config=KVConfig(self.options.kv_config_path),
            clock=self.clock,
            tell=self.told.append,
        )
        self._processors = processors(self.state)

    def answer_to(self, command: RemotingCommand, channel: Any = LINK) -> RemotingCommand:
        try:
            return self._processors[command.code](channel, command)
        except BrokerError as error:
            return command.answer(error.response_code, error.remark)

    def ask(
        self, code: RequestCode, body: bytes = b"", *, version: int = 479, **fields: Any
    ) -> tuple[int, str | None, dict[str, str], bytes]:
        command = RemotingCommand.request(code, {name: str(value) for name, value in fields.items()}, body)
        command.version = version
        answer = self.answer_to(command)
        return answer.code, answer.remark, answer.ext_fields, answer.body

    def body(self, cls: type, code: RequestCode, **fields: Any) -> Any:
        code_, remark, _, body = self.ask(code, **fields)
        assert (code_, remark) == (0, None)
        return decode_body(cls, body)

    def register(self, body: bytes | None = None, **fields: Any) -> tuple[int, str | None, dict[str, str], bytes]:
        given = {
            "brokerName": "b1",
            "brokerAddr": "b1:10911",
            "clusterName": "C",
            "haServerAddr": "b1:10912",
            "brokerId": 0,
        }
        sent = registered() if body is None else body
        return self.ask(RequestCode.REGISTER_BROKER, sent, **{**given, **fields})


def registered(compressed: bool = False, counter: int = 1) -> bytes:
    wrapper = TopicConfigAndMappingSerializeWrapper(topic_config_table=topics(T, U), data_version=version(counter))
    return encode_register_broker(RegisterBrokerBody(wrapper, []), compressed)


@pytest.fixture
def server(tmp_path) -> NameServer:
    return NameServer(tmp_path)


SUCCESS = (0, None, {}, b"")


# what Apache's name server answered


def exchanges(scenario: str) -> list[tuple[RemotingCommand, RemotingCommand | None, dict[str, Any]]]:
    """Requests to the name server in order, with the recorded answer; none for one-way requests."""
    index = captures.frame_index(scenario)
    commands = FrameDecoder().receive_data(captures.frames(scenario))
    answers = {line["answers"]: command for line, command in zip(index, commands, strict=True)}
    return [
        (command, answers.get(line["index"]), line)
        for line, command in zip(index, commands, strict=True)
        if line["direction"].endswith("->namesrv")
    ]


def value_of(body: bytes) -> Any:
    return body and fastjson.loads(body)


REPLAYED = {"admin_namesrv", "broker_register", "broker_heartbeat_lite", "slave_sync", "errors"}
UNKNOWN_CODE = 9999


@pytest.mark.parametrize("scenario", sorted(REPLAYED))
def test_recorded_requests_get_the_recorded_answers(server, scenario):
    compared = 0
    for request, recorded, line in exchanges(scenario):
        if request.code == UNKNOWN_CODE:
            continue
        answer = server.answer_to(request)
        if recorded is None or not known_at_start(server, request, recorded):
            continue
        assert (answer.code, answer.remark, answer.ext_fields, value_of(answer.body)) == (
            recorded.code,
            recorded.remark,
            recorded.ext_fields,
            value_of(recorded.body),
        ), line
        compared += 1
    assert compared >= 3


def known_at_start(server: NameServer, request: RemotingCommand, recorded: RemotingCommand) -> bool:
    """Return True if an answer depends only on this recording; some started with registered brokers, or with an emptied
    namespace."""
    routes = server.state.routes
    if request.code == RequestCode.REGISTER_BROKER:
        return bool(routes.live) and recorded.body == b""
    if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC and recorded.code == 0:
        shown = value_of(recorded.body)["brokerDatas"]
        return request.ext_fields["topic"] in routes.topics and addresses(shown) == len(routes.live)
    if request.code == RequestCode.GET_BROKER_CLUSTER_INFO:
        return addresses(value_of(recorded.body)["brokerAddrTable"].values()) == len(routes.live)
    return True


def addresses(brokers: Any) -> int:
    return sum(len(one["brokerAddrs"]) for one in brokers)


def test_every_request_that_the_registry_says_is_served_here():
    served = {code for code, spec in REGISTRY.items() if "namesrv" in spec.served_by}
    assert set(REQUESTS) == served


def test_every_request_reads_the_header_that_the_registry_says(server):
    for code in REQUESTS:
        header = REGISTRY[code].request_header
        if header is not None and any(field.required for field in wire_fields(header)):
            with pytest.raises(HeaderError, match=f"^{header.__name__}[.].*: required, but missing"):
                server.ask(code, unknown="1")


# brokers


def test_registration_answers_order_topics_where_there_are_some(server):
    assert server.register() == SUCCESS
    server.state.kv_config.show({"ORDER_TOPIC_CONFIG": {T: "b1:4"}})
    code, remark, fields, body = server.register()
    assert (code, remark, fields, decode_body(KVTable, body)) == (0, None, {}, KVTable({T: "b1:4"}))
    server.options.return_order_topic_config_to_broker = False
    assert server.register() == SUCCESS


def test_slave_is_told_its_master(server):
    server.register()
    answer = server.register(brokerId=1, brokerAddr="b1:20911", haServerAddr="b1:20912")
    assert answer == (0, None, {"masterAddr": "b1:10911", "haServerAddr": "b1:10912"}, b"")


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
def test_topics_are_read_from_both_forms(server, compressed):
    body = registered(compressed)
    crc = zlib.crc32(body) & 0x7FFFFFFF
    assert server.register(body, compressed=str(compressed).lower(), bodyCrc32=crc) == SUCCESS
    assert server.state.routes.topics == {T: {"b1": queue("b1")}, U: {"b1": queue("b1")}}


def test_registration_of_an_old_broker_holds_topics_alone(server):
    body = encode_body(TopicConfigSerializeWrapper(topics(T, U), version()))
    fields = {
        "brokerName": "b1", "brokerAddr": "a:1", "clusterName": "C", "haServerAddr": "a:2", "brokerId": 0,
    }  # fmt: skip
    assert server.ask(RequestCode.REGISTER_BROKER, body, version=36, **fields) == SUCCESS
    assert sorted(server.state.routes.topics) == [T, U]


def test_registration_without_body_knows_no_topics(server):
    assert server.register(b"") == SUCCESS
    assert (server.state.routes.topics, list(server.state.routes.brokers)) == ({}, ["b1"])


def test_damaged_registration_is_refused(server):
    assert server.register(bodyCrc32=5) == (1, "crc32 not match", {}, b"")
    for body in (b"{", b"[]", b"\x00"):
        with pytest.raises(ProtocolError):
            server.register(body)
    with pytest.raises(ProtocolError):
        server.register(b"not zlib", compressed="true")
    with pytest.raises(ProtocolError, match=r"RegisterBrokerRequestHeader\.broker_?[nN]ame"):
        server.ask(RequestCode.REGISTER_BROKER, registered(), brokerAddr="a:1")
    assert (server.state.routes.topics, server.state.routes.brokers) == ({}, {})


def test_single_topic_before_the_first_registration_is_refused(server):
    wrapper = TopicConfigAndMappingSerializeWrapper(topic_config_table=topics(T), data_version=version())
    body = encode_register_broker(RegisterBrokerBody(wrapper, []), False)
    assert server.register(body) == (1, "register broker failed", {}, b"")


def test_broker_may_name_its_own_expiry_and_zone(server):
    server.register(heartbeatTimeoutMillis=7000, __ZONE_NAME="east", enableActingMaster="true")
    (live,) = server.state.routes.live.values()
    assert (live.timeout_ms, live.connection) == (7000, LINK)
    broker = server.state.routes.brokers["b1"]
    assert (broker.zone_name, broker.enable_acting_master) == ("east", True)


def test_data_version_question_is_a_sign_of_life(server):
    fields = {"brokerName": "b1", "brokerAddr": "b1:10911", "clusterName": "C", "brokerId": 0}
    same = encode_body(version())
    assert server.ask(RequestCode.QUERY_DATA_VERSION, same, **fields) == (0, None, {"changed": "true"}, b"")
    server.register()
    server.clock.advance(100)
    code, remark, answered, body = server.ask(RequestCode.QUERY_DATA_VERSION, same, **fields)
    assert (code, remark, answered, decode_body(DataVersion, body)) == (0, None, {"changed": "false"}, version())
    (live,) = server.state.routes.live.values()
    assert live.last_update_ms == 100_000
    other = encode_body(version(2))
    assert server.ask(RequestCode.QUERY_DATA_VERSION, other, **fields)[2] == {"changed": "true"}
    assert server.ask(RequestCode.QUERY_DATA_VERSION, **fields)[2] == {"changed": "true"}


def test_heartbeat_keeps_a_broker(server):
    server.register()
    server.clock.advance(50)
    fields = {"brokerName": "b1", "brokerAddr": "b1:10911", "clusterName": "C"}
    assert server.ask(RequestCode.BROKER_HEARTBEAT, **fields) == SUCCESS
    (live,) = server.state.routes.live.values()
    assert live.last_update_ms == 50_000


def test_lowest_id_is_told_only_where_that_is_wanted(server):
    fields = {"brokerName": "b1", "brokerAddr": "b1:20911", "clusterName": "C", "brokerId": 1}
    for wanted, told in ((False, 0), (True, 2)):
        server.options.notify_min_broker_id_changed = wanted
        server.register(enableActingMaster="true", brokerId=2, brokerAddr="b1:30911")
        server.register(enableActingMaster="true", brokerId=1, brokerAddr="b1:20911")
        assert server.ask(RequestCode.UNREGISTER_BROKER, **fields) == SUCCESS
        assert len(server.told) == told
        server.ask(RequestCode.UNREGISTER_BROKER, **{**fields, "brokerAddr": "b1:30911", "brokerId": 2})


# topics


def test_route_form_follows_the_version_of_the_asker(server):
    server.register()
    quoted, unquoted = b'"brokerAddrs":{"0":"b1:10911"}', b'"brokerAddrs":{0:"b1:10911"}'
    route = RequestCode.GET_ROUTEINFO_BY_TOPIC
    assert quoted in server.ask(route, topic=T, version=401)[3]
    assert unquoted in server.ask(route, topic=T, version=400)[3]
    assert quoted in server.ask(route, topic=T, version=63, acceptStandardJsonOnly="true")[3]


def test_missing_route_says_where_to_read_on(server):
    remark = (
        "No topic route info in name server for the topic: ../x\n"
        "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
    )
    assert server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="../x") == (17, remark, {}, b"")


def test_route_carries_order_configuration_where_that_is_wanted(server):
    server.register()
    server.state.kv_config.show({"ORDER_TOPIC_CONFIG": {T: "b1:4"}})
    route = RequestCode.GET_ROUTEINFO_BY_TOPIC
    assert server.body(TopicRouteData, route, topic=T).order_topic_conf is None
    server.options.order_message_enable = True
    assert server.body(TopicRouteData, route, topic=T).order_topic_conf == "b1:4"
    assert server.body(TopicRouteData, route, topic=U).order_topic_conf is None


def test_route_of_a_zone(server):
    server.register(__ZONE_NAME="east")
    server.register(brokerName="b2", brokerAddr="b2:10911", __ZONE_NAME="west")
    zone = {"__ZONE_MODE": "true", "__ZONE_NAME": "west"}
    near = server.body(TopicRouteData, RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=T, **zone)
    assert [one.broker_name for one in near.queue_datas] == ["b2"]
    everywhere = server.body(TopicRouteData, RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=T, __ZONE_NAME="west")
    assert [one.broker_name for one in everywhere.queue_datas] == ["b1", "b2"]


def test_routes_wait_for_brokers_to_register_where_that_is_wanted(tmp_path):
    server = NameServer(tmp_path, need_wait_for_service=True, wait_seconds_for_service=45)
    server.register()
    refused = (1, "name server not ready", {}, b"")
    assert server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=T) == refused
    server.clock.advance(44.9)
    assert server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=T) == refused
    server.clock.advance(0.1)
    assert server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=T)[0] == 0


def test_topic_is_registered_and_deleted_by_request(server):
    server.register()
    body = encode_body(TopicRouteData(queue_datas=[queue("b1", queues=2)]))
    assert server.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, body, topic="V") == SUCCESS
    assert server.state.routes.topics["V"] == {"b1": queue("b1", queues=2)}
    assert server.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, b"", topic="W") == SUCCESS
    assert server.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic="V", clusterName="D") == SUCCESS
    assert server.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic=T) == SUCCESS
    assert sorted(server.state.routes.topics) == [U, "V"]
    assert server.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic="V", clusterName="C") == SUCCESS
    assert sorted(server.state.routes.topics) == [U]


@pytest.mark.parametrize(
    ("code", "fields", "expected"),
    [
        (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}, TopicList([T, U])),
        (RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "C"}, TopicList([T, U])),
        (RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, {}, TopicList(["C", "b1"], "b1:10911")),
        (RequestCode.GET_UNIT_TOPIC_LIST, {}, TopicList()),
        (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, {}, TopicList()),
        (RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, {}, TopicList()),
    ],
)
def test_topic_lists_and_their_switches(server, code, fields, expected):
    server.register()
    assert server.body(TopicList, code, **fields) == expected
    server.options.enable_all_topic_list = server.options.enable_topic_list = False
    refused = (1, "disable", {}, b"")
    if code == RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS:
        assert server.body(TopicList, code) == expected
    else:
        assert server.ask(code, **fields) == refused


# configuration


def test_key_values_over_the_wire(server):
    assert server.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="k", value="v") == SUCCESS
    assert server.ask(RequestCode.GET_KV_CONFIG, namespace="N", key="k") == (0, None, {"value": "v"}, b"")
    listed = server.body(KVTable, RequestCode.GET_KVLIST_BY_NAMESPACE, namespace="N")
    assert listed == KVTable({"k": "v"})
    assert server.ask(RequestCode.DELETE_KV_CONFIG, namespace="N", key="k") == SUCCESS
    assert server.ask(RequestCode.DELETE_KV_CONFIG, namespace="N", key="k") == SUCCESS
    missing = "No config item, Namespace: N Key: k"
    assert server.ask(RequestCode.GET_KV_CONFIG, namespace="N", key="k") == (22, missing, {}, b"")
    unknown = (22, "No config item, Namespace: M", {}, b"")
    assert server.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace="M") == unknown


def test_key_value_that_cannot_be_written_is_refused(server, tmp_path):
    (tmp_path / "kvConfig.json.tmp").mkdir()
    code, remark, _, _ = server.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="k", value="v")
    assert code == ResponseCode.SYSTEM_ERROR
    assert remark.startswith("key-value configuration not written: [Errno 21] Is a directory")
    assert server.ask(RequestCode.GET_KV_CONFIG, namespace="N", key="k")[0] == ResponseCode.QUERY_NOT_FOUND


def test_settings_are_shown(server):
    code, remark, _, body = server.ask(RequestCode.GET_NAMESRV_CONFIG)
    assert (code, remark) == (0, None)
    lines = body.decode().splitlines()
    assert "listenPort=9876" in lines and "supportActingMaster=false" in lines
    assert lines == sorted(lines)


def test_allowed_settings_are_updated_and_kept(server, tmp_path):
    (tmp_path / "namesrv.properties").write_text("# mine\nlistenPort=9876\n")
    body = b"orderMessageEnable=true\nenableTopicList=false\n"
    assert server.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body) == SUCCESS
    assert (server.options.order_message_enable, server.options.enable_topic_list) == (True, False)
    kept = (tmp_path / "namesrv.properties").read_text()
    assert kept == "# mine\nlistenPort=9876\norderMessageEnable=true\nenableTopicList=false\n"
    assert server.ask(RequestCode.UPDATE_NAMESRV_CONFIG) == SUCCESS


@pytest.mark.parametrize(
    ("line", "code", "remark"),
    [
        (b"kvConfigPath=/tmp/x", 16, "Can not update config in black list."),
        (b"rocketmqHome=/tmp/x", 16, "Can not update config in black list."),
        (b"listenPort=1", 16, "listenPort=1: cannot be changed at run time; these can: orderMessageEnable, "),
        (b"nonsense=1", 16, "nonsense=1: cannot be changed at run time; these can: orderMessageEnable, "),
        (b"enableTopicList=maybe", 29, "enableTopicList=maybe: must be true or false"),
        (b"returnOrderTopicConfigToBroker=-1", 29, "returnOrderTopicConfigToBroker=-1: must be true or false"),
        (b"waitSecondsForService=1", 16, "waitSecondsForService=1: cannot be changed at run time; these can: "),
        (b"needWaitForService=true", 16, "needWaitForService=true: cannot be changed at run time; these can: "),
        (b"notifyMinBrokerIdChanged=true", 16, "notifyMinBrokerIdChanged=true: cannot be changed at run time; "),
        (b"a=\\u00", 29, "line 2: "),
    ],
)
def test_refused_update_changes_nothing(server, tmp_path, line, code, remark):
    before = server.ask(RequestCode.GET_NAMESRV_CONFIG)
    answer = server.ask(RequestCode.UPDATE_NAMESRV_CONFIG, b"supportActingMaster=true\n" + line + b"\n")
    assert answer[0] == code and answer[1].startswith(remark)
    assert server.ask(RequestCode.GET_NAMESRV_CONFIG) == before
    assert list(tmp_path.iterdir()) == []


def test_update_that_cannot_be_kept_changes_nothing(server, tmp_path):
    (tmp_path / "namesrv.properties.tmp").mkdir()
    code, remark, _, _ = server.ask(RequestCode.UPDATE_NAMESRV_CONFIG, b"enableTopicList=false\n")
    assert code == ResponseCode.SYSTEM_ERROR and remark.startswith("settings not written: [Errno 21]")
    assert server.options.enable_topic_list is True
