"""Rights on what a request names by its place alone: the record's own topic, the half message's group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.access import ON, ROOT, access_of, allow, asking_broker, make_user
from tests.support.access import Signer as AnySigner
from tests.support.broker import BrokerInMemory
from tests.support.transactions import half_fields
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import Credentials

ADA = Credentials("ada", "secret")
SEND = {"a": "P", "b": "Other", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "i": "",
        "j": "0", "k": "false", "m": "false"}  # fmt: skip
END = {"producerGroup": "PG", "tranStateTableOffset": "0", "fromTransactionCheck": "false", "msgId": "K",
       "commitOrRollback": "12", "commitLogOffset": "0"}  # fmt: skip
MESSAGE_ID = "7F000002000051AF0000000000000000"
NAMED = {
    RequestCode.VIEW_MESSAGE_BY_ID: {"offset": "0", "topic": "Own"},
    RequestCode.CONSUMER_SEND_MSG_BACK: {"offset": "0", "group": "Own", "delayLevel": "-1", "originTopic": "Own"},
    RequestCode.CONSUME_MESSAGE_DIRECTLY: {
        "consumerGroup": "Own", "clientId": "ada", "topic": "Own", "msgId": MESSAGE_ID,
    },
}  # fmt: skip
REFUSED = "User:ada has no permission to access {} from 127.0.0.1, no matched policies."


class Signer(AnySigner):
    """A client's connection from a port of its own."""

    def __init__(self, broker: BrokerInMemory, credentials: Credentials, port: int) -> None:
        super().__init__(broker, credentials)
        self.peer = broker.connect(port)

    def requests(self) -> list[RemotingCommand]:
        """Return the requests that the broker sent to this client."""
        return [one for one in self.peer.received() if not one.is_response]

    def beat(self, *producers: str) -> None:
        """Register as a consumer of Own, and as a producer of these groups."""
        consumers = [] if producers else [ConsumerData("Own", "CONSUME_PASSIVELY", "CLUSTERING",
                     "CONSUME_FROM_LAST_OFFSET", [SubscriptionData(topic="Own", sub_string="*")])]  # fmt: skip
        data = HeartbeatData("ada", [ProducerData(name) for name in producers], consumers)
        assert self.ask(RequestCode.HEART_BEAT, {}, encode_body(data))[0] == 0


def world(folder: Path, **options: Any) -> tuple[BrokerInMemory, Signer, Signer]:
    """A broker, its root, and ada, who has all rights on topic and group Own."""
    clock = BrokerInMemory().clock
    broker = BrokerInMemory(access=access_of(str(folder), clock, **ON), clock=clock, **options)
    root = Signer(broker, ROOT, 1)
    make_user(root, "ada")
    for resource in ("Topic:Own", "Group:Own"):
        allow(root, "ada", resource, "All")
    return broker, root, Signer(broker, ADA, 2)


@pytest.mark.parametrize("code", NAMED, ids=lambda code: code.name)
def test_a_record_of_anothers_topic_is_refused(tmp_path: Path, code: RequestCode) -> None:
    broker, root, ada = world(tmp_path)
    assert root.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"secret")[0] == 0
    ada.beat()
    end = broker.store.max_physical_offset()
    assert ada.ask(code, NAMED[code]) == (16, REFUSED.format("Topic:Other"))
    assert (broker.store.max_physical_offset(), ada.requests()) == (end, [])


@pytest.mark.parametrize("code", NAMED, ids=lambda code: code.name)
def test_a_record_of_the_own_topic_is_served(tmp_path: Path, code: RequestCode) -> None:
    _, root, ada = world(tmp_path)
    assert root.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"b": "Own"}, b"own")[0] == 0
    ada.beat()
    if code is not RequestCode.CONSUME_MESSAGE_DIRECTLY:
        assert ada.ask(code, NAMED[code])[0] == 0
        return
    with pytest.raises(ValueError, match="expected 1, got 0"):  # the consumer is asked, and has not answered
        ada.ask(code, NAMED[code])


@pytest.mark.parametrize("code", NAMED, ids=lambda code: code.name)
def test_rights_on_records_can_be_switched_off(tmp_path: Path, code: RequestCode) -> None:
    _, root, ada = world(tmp_path, record_rights_enable=False)
    assert root.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"secret")[0] == 0
    ada.beat()
    if code is not RequestCode.CONSUME_MESSAGE_DIRECTLY:
        assert ada.ask(code, NAMED[code])[0] == 0


def half_of(root: Signer, broker: BrokerInMemory) -> None:
    """Root begins a transaction of group PG on topic T."""
    assert root.ask(RequestCode.SEND_MESSAGE_V2, half_fields("K", broker.now_ms()), b"half")[0] == 0


def test_another_user_ends_no_transaction_without_both_rights(tmp_path: Path) -> None:
    """Registering as a producer of the group is not enough."""
    broker, root, ada = world(tmp_path)
    half_of(root, broker)
    ada.beat("PG")
    for resource in ("Group:PG", "Topic:T"):
        assert ada.ask(RequestCode.END_TRANSACTION, END) == (16, REFUSED.format(resource))
        allow(root, "ada", resource, "Pub")
    assert ada.ask(RequestCode.END_TRANSACTION, END)[0] == 0


def test_only_who_may_is_asked_about_a_transaction(tmp_path: Path) -> None:
    broker, root, ada = world(tmp_path)
    half_of(root, broker)
    ada.beat("PG")
    asked = []
    for resource in ("Group:PG", "Topic:T", ""):
        broker.clock.advance(61)
        broker.controller.transactions.check()
        broker.clock.pump([0] * 10)
        asked.append([one.code for one in ada.requests()])
        if resource:
            allow(root, "ada", resource, "Pub")
    assert asked == [[], [], [RequestCode.CHECK_TRANSACTION_STATE]]


def test_the_group_is_not_asked_for_where_that_is_chosen(tmp_path: Path) -> None:
    broker, root, ada = world(tmp_path, producer_group_rights_enable=False)
    half_of(root, broker)
    ada.beat("PG")
    assert ada.ask(RequestCode.END_TRANSACTION, END) == (16, REFUSED.format("Topic:T"))
    allow(root, "ada", "Topic:T", "Pub")
    assert ada.ask(RequestCode.END_TRANSACTION, END)[0] == 0


def test_the_sender_needs_no_right_on_its_group(tmp_path: Path) -> None:
    broker, root, ada = world(tmp_path)
    allow(root, "ada", "Topic:T", "Pub")
    half_of(ada, broker)
    assert ada.ask(RequestCode.END_TRANSACTION, END)[0] == 0


def test_accounts_of_plain_acl_yml_see_records_of_their_topics_alone(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text(
        "accounts:\n"
        "  - {accessKey: administrator, secretKey: secret-of-admin, admin: true}\n"
        "  - {accessKey: account-ada, secretKey: secret-of-ada, defaultTopicPerm: DENY, topicPerms: [Own=SUB]}\n"
    )
    broker = BrokerInMemory(access=access_of(str(tmp_path), acl_enable=True, rocketmq_home=str(tmp_path)))
    admin = Signer(broker, Credentials("administrator", "secret-of-admin"), 1)
    ada = Signer(broker, Credentials("account-ada", "secret-of-ada"), 2)
    for topic in ("Other", "Own"):
        assert admin.ask(RequestCode.SEND_MESSAGE_V2, SEND | {"b": topic}, b"x")[0] == 0
    second = int(broker.store.queue_entries("Own", 0, 0, 1)[0][0])
    view = RequestCode.VIEW_MESSAGE_BY_ID
    code, remark = ada.ask(view, {"offset": "0", "topic": "Own"})
    assert (code, str(remark).rpartition(": ")[2]) == (1, "No default permission for topic:Other")
    assert ada.ask(view, {"offset": str(second), "topic": "Own"})[0] == 0


def test_a_request_signed_for_another_code_is_refused_by_a_broker(tmp_path: Path) -> None:
    """A setting allows it."""
    for strict, code in ((True, 16), (False, 0)):
        folder = tmp_path / str(strict)
        folder.mkdir()
        broker = asking_broker(str(folder), signed_fields_strict=strict)
        root = Signer(broker, ROOT, 1)
        assert root.ask(RequestCode.GET_BROKER_CONFIG, {"topic": "T"})[0] == code
