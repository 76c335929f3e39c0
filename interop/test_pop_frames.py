"""Pops by hand-made frames: the same requests get the same answers from both brokers."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, unique
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME, Cluster
from twisted_mq.protocol.layouts.record_codec import iterate_messages

pytestmark = pytest.mark.peer

POP, ACK, BATCH_ACK, CHANGE, NOTIFICATION, POLLING_INFO, PEEK = 200050, 200051, 200151, 200053, 200054, 200055, 200052
FOUND, NOTHING = (0, "FOUND"), (210, "NO_MESSAGE_IN_QUEUE")
INVISIBLE_MS = 3000
POPPED_NOTHING = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0", "restNum": "0"}


def now_ms() -> int:
    return int(time.time() * 1000)


@attrs.define(eq=False)
class Desk:
    """Asks one broker about a topic for a group."""

    java: JavaPeer
    broker: str
    topic: str
    group: str

    def ask(self, code: int, fields: dict[str, Any], body: bytes = b"") -> dict[str, Any]:
        """Code, remark, fields, and the messages of the body."""
        place = {"topic": self.topic, "consumerGroup": self.group}
        text = {name: str(value) for name, value in {**place, **fields}.items() if value is not None}
        answer = dict(self.java.invoke(self.broker, code, text, body))
        answer["fields"] = answer["fields"] or {}
        data = base64.b64decode(answer["body"] or "")
        answer["messages"] = list(iterate_messages(data)) if code in (POP, PEEK) and data else []
        return answer

    def pop(self, queue: int = 0, **more: Any) -> dict[str, Any]:
        fields = {"queueId": queue, "maxMsgNums": 32, "invisibleTime": INVISIBLE_MS, "pollTime": 0, "bornTime": now_ms(),
                  "initMode": 0, "order": "false"}  # fmt: skip
        return self.ask(POP, fields | more)

    def receipt(self, popped: dict[str, Any], start: int, offset: int, queue: int = 0, mark: int = 0) -> str:
        fields = popped["fields"]
        numbers = (start, fields["popTime"], fields["invisibleTime"], fields["reviveQid"], mark)
        return " ".join(map(str, (*numbers, BROKER_NAME, queue, offset)))

    def ack(self, receipt: str, offset: int, **more: Any) -> dict[str, Any]:
        return self.ask(ACK, {"queueId": 0, "offset": offset, "extraInfo": receipt, **more})

    def notified(self) -> str:
        fields = {"queueId": -1, "pollTime": 0, "bornTime": now_ms()}
        return str(self.ask(NOTIFICATION, fields)["fields"]["hasMsg"])


@pytest.fixture
def desk(java: JavaPeer, cluster: Cluster, topic: str, group: str) -> Desk:
    return Desk(java, cluster.broker, topic, group)


@pytest.fixture
def send(java_clients: Clients, desk: Desk) -> Callable[..., None]:
    """Sends texts to a queue and waits until they can be read."""
    producer = java_clients.producer()

    def send_all(*texts: str, queue: int = 0, **more: Any) -> None:
        for text in texts:
            place = {"topic": desk.topic, "broker_name": BROKER_NAME, "queue_id": queue}
            producer.command("send_to_queue", body=text, **place, **more)

    return send_all


def texts(answer: dict[str, Any]) -> list[str]:
    return [message.body.decode() for message in answer["messages"]]


def status(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["code"], answer["remark"]


def pick(answer: dict[str, Any], *names: str) -> list[str]:
    return [answer["fields"][name] for name in names]


def test_popped_messages_come_back_unless_they_are_acknowledged(desk: Desk, send: Callable[..., None]) -> None:
    send("a", "b", tags="A")
    send("c", tags="B")
    send("d", "e", "f", tags="A")
    wait_until(lambda: desk.notified() == "true", "the messages can be read")
    assert pick(desk.ask(POLLING_INFO, {"queueId": 0}), "pollingNum") == ["0"]
    seen = desk.ask(PEEK, {"queueId": 0, "maxMsgNums": 2})
    assert (status(seen), texts(seen), seen["fields"]) == (FOUND, ["a", "b"], POPPED_NOTHING | {"restNum": "6"})
    popped = desk.pop(maxMsgNums=4, exp="A", expType="TAG")
    assert (status(popped), texts(popped)) == (FOUND, ["a", "b", "d", "e"])
    infos = pick(popped, "startOffsetInfo", "msgOffsetInfo", "restNum", "invisibleTime", "reviveQid")
    assert infos == ["0 0 0", "0 0 0,1,3,4", "1", str(INVISIBLE_MS), "0"]
    assert desk.ack(desk.receipt(popped, 0, 0), 0)["code"] == 0
    bits = base64.b64encode(bytes([1 << 3])).decode()
    entry = {"c": desk.group, "t": desk.topic, "r": "0", "so": 0, "q": 0, "rq": 0, "it": INVISIBLE_MS, "b": bits}
    batch = {"brokerName": BROKER_NAME, "acks": [{**entry, "pt": int(popped["fields"]["popTime"])}]}
    assert desk.ask(BATCH_ACK, {}, json.dumps(batch).encode())["code"] == 0
    fields = {"queueId": 0, "offset": 4, "extraInfo": desk.receipt(popped, 0, 4), "invisibleTime": 60_000}
    changed = desk.ask(CHANGE, fields)
    assert (changed["code"], pick(changed, "invisibleTime", "reviveQid")) == (0, ["60000", "0"])
    last = desk.pop(order="false", exp="n = 1", expType="SQL92")
    assert (status(last), pick(last, "startOffsetInfo", "msgOffsetInfo", "restNum")) == (NOTHING, ["", "", "0"])
    wait_until(lambda: desk.notified() == "true", "what was not acknowledged comes back")
    again = desk.pop()
    (message,) = again["messages"]
    receipt = desk.receipt(again, 0, 0, mark=1)
    assert (message.topic, message.body, message.reconsume_times) == (desk.topic, b"b", 1)
    assert (message.properties["POP_CK"], message.queue_offset) == (receipt, 0)
    assert message.properties["1ST_POP_TIME"] == popped["fields"]["popTime"]
    assert pick(again, "startOffsetInfo", "msgOffsetInfo", "restNum") == ["1 0 0", "1 0 0", "0"]
    assert desk.ack(receipt, 0, topic=f"%RETRY%{desk.group}_{desk.topic}")["code"] == 0


def test_ordered_pops_hold_their_queue(desk: Desk, send: Callable[..., None]) -> None:
    send("a", "b", "c")
    wait_until(lambda: desk.notified() == "true", "the messages can be read")
    first = desk.pop(order="true", maxMsgNums=2, attemptId="x", invisibleTime=1500)
    counts = pick(first, "orderCountInfo", "reviveQid", "startOffsetInfo", "msgOffsetInfo", "restNum")
    assert (texts(first), counts) == (["a", "b"], ["0 0 0", "999", "0 0 0", "0 0 0,1", "1"])
    held = desk.pop(order="true", maxMsgNums=2)
    assert (status(held), pick(held, "restNum", "orderCountInfo")) == (NOTHING, ["0", ""])
    assert texts(desk.pop(order="true", maxMsgNums=2, attemptId="x", invisibleTime=1500)) == ["a", "b"]
    stale = desk.ack(desk.receipt(first, 0, 0), 0)
    assert stale["code"] == 0
    answers: list[dict[str, Any]] = []

    def comes_again() -> bool:
        answers.append(desk.pop(order="true", maxMsgNums=2))
        return answers[-1]["code"] == 0

    wait_until(comes_again, "the queue is free again")
    again = answers[-1]
    assert (texts(again), pick(again, "orderCountInfo")) == (["a", "b"], ["0 qo0%0 1;0 qo0%1 1;0 0 1"])
    wrong = desk.ack(desk.receipt(again, 0, 2), 2)
    start = f"offset is illegal, key:{desk.topic}@{desk.group}@0, old:0, commit:2, next:-1, /127.0.0.1:"
    assert (wrong["code"], wrong["remark"][: len(start)]) == (13, start)
    assert [desk.ack(desk.receipt(again, 0, offset), offset)["code"] for offset in (1, 0)] == [0, 0]
    assert texts(desk.pop(order="true")) == ["c"]


def test_waiting_pop_is_woken_or_told_that_nothing_came(desk: Desk, send: Callable[..., None]) -> None:
    assert status(desk.pop(pollTime=300)) == NOTHING
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(lambda: desk.pop(queue=-1, pollTime=20_000))
        wait_until(
            lambda: pick(desk.ask(POLLING_INFO, {"queueId": -1}), "pollingNum") == ["1"], "the broker holds the pop"
        )
        send("late", queue=3)
        answer = waiting.result(30)
    assert (status(answer), texts(answer), pick(answer, "startOffsetInfo")) == (FOUND, ["late"], ["0 3 0"])


GOOD_RECEIPT = f"0 1 5000 0 0 {BROKER_NAME} 0 0"
POP_FIELDS = {"queueId": 0, "maxMsgNums": 9, "invisibleTime": 1, "pollTime": 0, "initMode": 0}
ACK_FIELDS = {"queueId": 0, "offset": 0, "extraInfo": GOOD_RECEIPT}
ASKED = {"queueId": 0, "pollTime": 0, "bornTime": 0}
NOWHERE = {"topic": "Nowhere"}
A_MINUTE_AGO = "a minute ago"
"""A time that the test puts in. Our broker takes a pop that is older than five minutes for one of a wrong clock."""
BAD: list[tuple[int, dict[str, Any], int, str, dict[str, str] | None]] = [
    (POP, {**POP_FIELDS, **NOWHERE}, 17, "topic[Nowhere] not exist, apply first please! ", POPPED_NOTHING),
    (POP, {**POP_FIELDS, "queueId": 4}, 29, "queueId[4] is illegal, topic:[", POPPED_NOTHING),
    (
        POP,
        {**POP_FIELDS, "maxMsgNums": 33},
        29,
        "the broker[127.0.0.1] pop message's num is greater than 32",
        POPPED_NOTHING,
    ),
    (
        POP,
        {**POP_FIELDS, "bornTime": A_MINUTE_AGO},
        210,
        "the broker[127.0.0.1] pop message is timeout too much",
        POPPED_NOTHING,
    ),
    (POP, {**POP_FIELDS, "exp": "||"}, 23, "parse the consumer's subscription failed", POPPED_NOTHING),
    (POP, {**POP_FIELDS, "exp": "a > >", "expType": "SQL92"}, 23, "parse the consumer's sub", POPPED_NOTHING),
    (POP, {**POP_FIELDS, "topic": None}, 1, "", None),
    (ACK, {**ACK_FIELDS, **NOWHERE}, 17, "topic[Nowhere] not exist, apply first please! ", {}),
    (ACK, {**ACK_FIELDS, "queueId": 4}, 13, "queueId[4] is illegal, topic:[", {}),
    (ACK, {**ACK_FIELDS, "offset": 99}, 208, "offset is illegal, key:", {}),
    (ACK, {**ACK_FIELDS, "extraInfo": "1 2 3"}, 1, "", {}),
    (ACK, {**ACK_FIELDS, "extraInfo": "x 2 3 0 0 b 0 0"}, 1, "", {}),
    (ACK, {**ACK_FIELDS, "extraInfo": None}, 1, "", {}),
    (CHANGE, {**ACK_FIELDS, "invisibleTime": 1, **NOWHERE}, 17, "topic[Nowhere] not exist, apply first please! ", None),
    (CHANGE, {**ACK_FIELDS, "invisibleTime": 1, "queueId": 4}, 13, "queueId[4] is illegal, topic:[", None),
    (CHANGE, {**ACK_FIELDS, "invisibleTime": 1, "offset": 99}, 208, "", None),
    (NOTIFICATION, {**ASKED, **NOWHERE}, 17, "topic[Nowhere] not exist, ", {"hasMsg": "false", "pollingFull": "false"}),
    (NOTIFICATION, {**ASKED, "queueId": 4}, 29, "queueId[4] is illegal, ", {"hasMsg": "false", "pollingFull": "false"}),
    (POLLING_INFO, {"queueId": 4}, 29, "queueId[4] is illegal, topic:[", {"pollingNum": "0"}),
    (PEEK, {"queueId": 4, "maxMsgNums": 1}, 29, "queueId[4] is illegal, topic:[", POPPED_NOTHING),
    (PEEK, {"queueId": 0, "maxMsgNums": 1}, 19, "NO_MESSAGE_IN_QUEUE", POPPED_NOTHING),
]


def test_bad_requests_are_refused_alike(desk: Desk) -> None:
    desk.group = unique("Bad")
    for code, fields, expected, remark, told in BAD:
        a_minute_ago = int(time.time() * 1000) - 60_000
        answer = desk.ask(
            code, {name: a_minute_ago if value == A_MINUTE_AGO else value for name, value in fields.items()}
        )
        found = answer["code"], (answer["remark"] or "")[: len(remark)]
        assert found == (expected, remark), (code, fields)
        assert told is None or answer["fields"] == told, (code, fields)
    for body, expected in ((b"", 208), (b'{"acks":[]}', 208), (b'{"acks":', 1), (b'{"acks":[{"r":"7"}]}', 1)):
        assert desk.ask(BATCH_ACK, {}, body)["code"] == expected, body
