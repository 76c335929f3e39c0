"""A broker with access control 1.0: the order of its questions, with Apache's remarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.access import Signer, access_of
from tests.support.broker import BrokerInMemory
from twisted_mq.protocol import bodies
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.signature import Credentials

ACL = "org.apache.rocketmq.acl.common.AclException: "
SEND = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "i": "",
        "j": "0", "k": "false", "m": "false"}  # fmt: skip
ADA = Credentials("accountA", "secret-of-ada")
FILE = """
globalWhiteRemoteAddresses: [{listed}]
accounts:
  - accessKey: accountA
    secretKey: secret-of-ada
    whiteRemoteAddress: {own}
    admin: {admin}
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms: [T=PUB, A=DENY, B=PUB|SUB]
    groupPerms: [G=DENY]
"""


def signer(
    home: Path, credentials: Credentials | None = ADA, listed: str = "", own: str = "", admin: str = "false"
) -> Signer:
    (home / "conf").mkdir()
    (home / "conf" / "plain_acl.yml").write_text(FILE.format(listed=listed, own=own, admin=admin))
    access = access_of(str(home), acl_enable=True, rocketmq_home=str(home))
    return Signer(BrokerInMemory(access=access), credentials)


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [
        (None, "No accessKey is configured"),
        (Credentials("accountB", "secret-of-ada"), "No acl config for accountB"),
        (Credentials("accountA", "wrong"), "Check signature failed for accessKey=accountA"),
    ],
)
def test_who_does_not_prove_who_he_is(tmp_path: Path, credentials, reason: str) -> None:
    stranger = signer(tmp_path, credentials)
    for code in (RequestCode.SEND_MESSAGE_V2, RequestCode.GET_BROKER_RUNTIME_INFO):
        assert stranger.ask(code, SEND) == (1, ACL + reason)


def test_a_listed_address_is_asked_nothing(tmp_path: Path) -> None:
    assert signer(tmp_path, None, listed="127.0.0.*").ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0


def test_an_accounts_own_address_needs_no_signature(tmp_path: Path) -> None:
    own = signer(tmp_path, Credentials("accountA", "wrong"), own="127.0.0.1")
    assert own.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"b": "A"}, b"x")[0] == 0


def test_an_admin_may_do_everything(tmp_path: Path) -> None:
    admin = signer(tmp_path, admin="true")
    assert admin.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"b": "A"}, b"x")[0] == 0
    assert admin.ask(RequestCode.CLEAN_UNUSED_TOPIC)[0] == 0


def test_what_an_account_may_do(tmp_path: Path) -> None:
    ada = signer(tmp_path)
    pull = {"topic": "B", "consumerGroup": "C", "queueId": "0", "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "0",
            "commitOffset": "0", "subVersion": "0"}  # fmt: skip
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] == 0
    assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"b": "RMQ_SYS_TRACE_TOPIC"}, b"x")[1] is None
    for code, fields, reason in (
        (RequestCode.SEND_MESSAGE_V2, SEND | {"b": "A"}, "No permission for topic:A"),
        (RequestCode.SEND_MESSAGE_V2, SEND | {"b": "X"}, "No default permission for topic:X"),
        (RequestCode.PULL_MESSAGE, pull | {"topic": "T"}, "No permission for topic:T"),
        (RequestCode.POP_MESSAGE, pull | {"topic": "T"}, "No permission for topic:T"),
        (RequestCode.PULL_MESSAGE, pull | {"consumerGroup": "G"}, "No permission for group:G"),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "G"}, "No permission for group:G"),
    ):
        assert ada.ask(code, fields) == (1, ACL + reason)


@pytest.mark.parametrize(
    "code",
    [RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.UPDATE_BROKER_CONFIG, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET],
)
def test_what_changes_the_broker_is_for_admins(tmp_path: Path, code: RequestCode) -> None:
    reason = f"Need admin permission for request code={int(code)}, but accessKey=accountA is not"
    assert signer(tmp_path).ask(code, {"topic": "T", "group": "C"}) == (1, ACL + reason)


def test_what_only_reads_is_for_every_account(tmp_path: Path) -> None:
    assert signer(tmp_path).ask(RequestCode.GET_BROKER_RUNTIME_INFO)[0] == 0


def test_heartbeats_name_groups_and_topics(tmp_path: Path) -> None:
    ada = signer(tmp_path)
    for topic, group, reason in (("T", "C", "No permission for topic:T"), ("B", "G", "No permission for group:G")):
        data = bodies.ConsumerData(group, subscription_data_set=[bodies.SubscriptionData(topic=topic)])
        assert ada.body(RequestCode.HEART_BEAT, bodies.HeartbeatData("id", [], [data])) == (1, ACL + reason)
    assert ada.body(RequestCode.HEART_BEAT, bodies.HeartbeatData("id", [bodies.ProducerData("P")], []))[0] == 0


def test_what_was_allowed_before_the_accounts_changed_is_asked_for_anew(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    path = tmp_path / "conf" / "plain_acl.yml"
    text = FILE.format(listed="", own="", admin="false")
    path.write_text(text)
    access = access_of(str(tmp_path), acl_enable=True, rocketmq_home=str(tmp_path))
    ada = Signer(BrokerInMemory(access=access), ADA)
    assert access.plain is not None
    for old, new, remark in (
        ("T=PUB, ", "T=DENY, ", "No permission for topic:T"),
        ("secret-of-ada", "another secret", "Check signature failed for accessKey=accountA"),
        ("accountA", "accountB", "No acl config for accountA"),
    ):
        path.write_text(text)
        access.plain.look()
        assert [ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")[0] for _ in range(2)] == [0, 0]
        path.write_text(text.replace(old, new))
        access.plain.look()
        assert ada.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x") == (1, ACL + remark)
