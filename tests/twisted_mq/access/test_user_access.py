"""A broker that asks: who is refused what, with Apache's codes and remarks."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.support.access import ROOT, Signer, allow, asking_broker, make_user
from tests.support.broker import BrokerInMemory
from twisted_mq.access.guard import guarded
from twisted_mq.broker.request_table import served_requests
from twisted_mq.protocol import bodies
from twisted_mq.protocol.bodies import encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import Credentials, sign

ADA = Credentials("ada", "secret")
SEND = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "i": "",
        "j": "0", "k": "false", "m": "false"}  # fmt: skip
PULL = {"consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "0",
        "commitOffset": "0", "subVersion": "0"}  # fmt: skip
STRATEGY = "org.apache.rocketmq.auth."


@pytest.fixture
def broker(tmp_path: Path) -> BrokerInMemory:
    return asking_broker(str(tmp_path))


@pytest.fixture
def root(broker: BrokerInMemory) -> Signer:
    return Signer(broker, ROOT)


@pytest.fixture
def ada(broker: BrokerInMemory, root: Signer) -> Signer:
    make_user(root, "ada")
    return Signer(broker, ADA)


def test_off_the_table_of_requests_is_the_very_same() -> None:
    broker = BrokerInMemory()
    table = dict(broker.processors)
    assert guarded(table, ()) == table
    assert served_requests(broker.controller).processors.keys() == table.keys()
    assert not set(table) & {int(code) for code in RequestCode if code.name.startswith("AUTH_")}


def test_a_table_with_a_request_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no access rule for these requests: \[9999\]"):
        guarded({9999: lambda channel, command: None}, ())


@pytest.mark.parametrize(
    ("credentials", "remark"),
    [
        (None, "username cannot be null."),
        (Credentials("", "x"), "username cannot be null."),
        (Credentials("eve", "x"), "User:eve is not found."),
        (Credentials("ada", "wrong"), "check signature failed."),
    ],
)
def test_who_does_not_prove_who_he_is(broker: BrokerInMemory, ada: Signer, credentials, remark: str) -> None:
    stranger = Signer(broker, credentials)
    for code in (RequestCode.SEND_MESSAGE_V2, RequestCode.GET_BROKER_RUNTIME_INFO, RequestCode.HEART_BEAT):
        assert stranger.ask(code, SEND, b"x") == (16, remark)
    assert broker.store.get_message("T", 0, 0, 1, 100, None).records == []


def test_a_disabled_user(broker: BrokerInMemory, root: Signer, ada: Signer) -> None:
    assert root.ask(RequestCode.AUTH_UPDATE_USER, {"username": "ada"}, b'{"userStatus":"disable"}') == (0, None)
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND) == (16, "User:ada is disabled.")


def test_an_unknown_code_is_said_to_be_unknown_to_everybody(broker: BrokerInMemory) -> None:
    assert Signer(broker, None).ask(9999) == (3, " request type 9999 not supported")


def test_a_super_user_may_do_everything(root: Signer) -> None:
    assert root.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0
    assert root.ask(RequestCode.GET_BROKER_RUNTIME_INFO)[0] == 0


def test_a_user_may_do_what_is_allowed_and_nothing_else(root: Signer, ada: Signer) -> None:
    none = "User:ada has no permission to access {} from 127.0.0.1, no matched policies."
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x") == (16, none.format("Topic:T"))
    allow(root, "ada", "Topic:T", "Pub")
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"b": "U"}, b"x") == (16, none.format("Topic:U"))
    assert ada.ask(RequestCode.PULL_MESSAGE, PULL) == (16, none.format("Topic:T"))
    assert ada.ask(RequestCode.LITE_PULL_MESSAGE, PULL) == (16, none.format("Topic:T"))
    allow(root, "ada", "Topic:T", "Pub", "Sub")
    assert ada.ask(RequestCode.PULL_MESSAGE, PULL) == (16, none.format("Group:G"))
    assert ada.ask(RequestCode.UPDATE_BROKER_CONFIG, {}, b"x=1") == (16, none.format("Cluster:CapCluster"))
    assert ada.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "0"}) == (16, none.format("Cluster:CapCluster"))
    allow(root, "ada", "Topic:T", "Pub", decision="Deny")
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x") == (
        16,
        "User:ada has no permission to access Topic:T from 127.0.0.1, the decision is deny.",
    )


def test_the_retry_topic_of_another_group_is_that_groups(root: Signer, ada: Signer) -> None:
    allow(root, "ada", "Group:G", "Sub")
    assert ada.ask(RequestCode.PULL_MESSAGE, PULL | {"topic": "%RETRY%H"}) == (
        16,
        "User:ada has no permission to access Group:H from 127.0.0.1, no matched policies.",
    )


def test_addresses_of_a_rule(root: Signer, ada: Signer) -> None:
    allow(root, "ada", "Topic:T", "Pub", source="10.0.0.0/8")
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 16
    allow(root, "ada", "Topic:T", "Pub", source="127.0.0.0/8")
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0


def heartbeat(topic: str, count: int = 1) -> bytes:
    subscriptions = [bodies.SubscriptionData(topic=topic, sub_string="*") for _ in range(count)]
    return encode_body(bodies.HeartbeatData("id", [], [bodies.ConsumerData("G", subscription_data_set=subscriptions)]))


@pytest.mark.parametrize("count", [1, 2000], ids=["short", "read in a thread"])
def test_a_heartbeat_needs_the_rights_of_its_consumers(root: Signer, ada: Signer, count: int) -> None:
    allow(root, "ada", "Group:G", "Sub")
    refusal = "User:ada has no permission to access Topic:T from 127.0.0.1, no matched policies."
    assert ada.ask(RequestCode.HEART_BEAT, {}, heartbeat("T", count)) == (16, refusal)
    allow(root, "ada", "Topic:T", "Sub")
    assert ada.ask(RequestCode.HEART_BEAT, {}, heartbeat("T", count))[0] == 0


def test_a_producers_heartbeat_needs_none(ada: Signer) -> None:
    body = encode_body(bodies.HeartbeatData("id", [bodies.ProducerData("P")], []))
    assert ada.ask(RequestCode.HEART_BEAT, {}, body)[0] == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff" * 100_000])
def test_a_body_that_says_nothing_allows_nothing(ada: Signer, body: bytes) -> None:
    code, remark = ada.ask(RequestCode.LOCK_BATCH_MQ, {}, body)
    assert code in (1, 16)
    assert remark


def test_requests_of_the_white_lists_are_not_asked(tmp_path: Path) -> None:
    broker = asking_broker(str(tmp_path), authentication_whitelist="310, 28", authorization_whitelist="310")
    stranger = Signer(broker, None)
    assert stranger.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0
    assert stranger.ask(RequestCode.GET_BROKER_RUNTIME_INFO) == (
        16,
        "Authorization failed. Please verify your access rights and try again.",
    )


def test_rights_without_signatures(tmp_path: Path) -> None:
    """Apache takes the name as it is said, where only rights are looked at."""
    broker = asking_broker(str(tmp_path), authentication_enabled=False)
    said = Signer(broker, None)
    assert said.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"AccessKey": "root"}, b"x")[0] == 0
    assert said.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"AccessKey": "eve"}) == (16, "User:eve not found.")


def test_the_same_request_again_is_taken_again(root: Signer, broker: BrokerInMemory) -> None:
    """As Apache: no time and no number is signed."""
    command = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, dict(SEND), b"x")
    sign(command, ROOT)
    other = broker.connect()
    for peer in (root.peer, other):
        peer.send(command)
        (answer,) = peer.received()
        assert answer.code == 0


def test_a_field_that_stands_twice_is_read_once(root: Signer, ada: Signer, broker: BrokerInMemory) -> None:
    """The checked fields are the served ones."""
    allow(root, "ada", "Topic:T", "Pub")
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0  # its fields become a template
    for first, second in (("T", "U"), ("U", "T")):
        fields = {**SEND, "b": second}
        command = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, b"x")
        sign(command, ADA)
        text = json.dumps(command.ext_fields, separators=(",", ":"))
        twice = text.replace('"b":', f'"b":"{first}","b":', 1)
        command.raw_ext_fields = msgspec.Raw(twice.encode())
        ada.peer.send(command)
        ada.peer.received()
    assert broker.store.get_message("U", 0, 0, 1, 100, None).records == []


def test_the_stateful_strategy_remembers_a_connections_user(tmp_path: Path) -> None:
    broker = asking_broker(
        str(tmp_path),
        authentication_strategy=f"{STRATEGY}authentication.strategy.StatefulAuthenticationStrategy",
        authorization_strategy=f"{STRATEGY}authorization.strategy.StatefulAuthorizationStrategy",
    )
    root = Signer(broker, ROOT)
    make_user(root, "ada")
    allow(root, "ada", "Topic:T", "Pub")
    ada = Signer(broker, ADA)
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0
    assert root.ask(RequestCode.AUTH_UPDATE_USER, {"username": "ada"}, b'{"userStatus":"disable"}') == (0, None)
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0
    assert Signer(broker, ADA).ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x") == (16, "User:ada is disabled.")
    broker.clock.advance(61)
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x") == (16, "User:ada is disabled.")


def test_what_was_allowed_before_is_asked_for_anew_when_the_user_or_his_rights_change(
    root: Signer, ada: Signer
) -> None:
    user = {"username": "ada"}
    changes: list[tuple[int, dict[str, str], bytes, str]] = [
        (RequestCode.AUTH_UPDATE_USER, user, b'{"password":"another"}', "check signature failed."),
        (RequestCode.AUTH_UPDATE_USER, user, b'{"userStatus":"disable"}', "User:ada is disabled."),
        (RequestCode.AUTH_DELETE_USER, user, b"", "User:ada is not found."),
        (
            RequestCode.AUTH_DELETE_ACL, {"subject": "User:ada"}, b"",
            "User:ada has no permission to access Topic:T from 127.0.0.1, no matched policies.",
        ),
    ]  # fmt: skip
    for code, fields, body, remark in changes:
        root.ask(RequestCode.AUTH_DELETE_USER, user)
        make_user(root, "ada")
        allow(root, "ada", "Topic:T", "Pub")
        assert [ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] for _ in range(2)] == [0, 0]
        assert root.ask(code, fields, body) == (0, None)
        assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x") == (16, remark)
