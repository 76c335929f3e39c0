"""QUERY_MESSAGE answers the recorded requests as Apache's broker did, for the messages of the recording."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.support.captures import frame_index, frames
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder

SCENARIO = "query_by_key_and_id"


def conversations(code: int) -> list[tuple[RemotingCommand, RemotingCommand]]:
    """The recorded requests of a code, with their answers."""
    found = FrameDecoder().receive_data(frames(SCENARIO))
    answers = {
        line["answers"]: found[line["index"]] for line in frame_index(SCENARIO) if line.get("answers") is not None
    }
    return [
        (command, answers[index])
        for index, command in enumerate(found)
        if command.code == code and not command.flag & 1
    ]


@pytest.fixture
def peer() -> Peer:
    """A client of a broker that holds the recording's messages, sent by the recording's own requests."""
    peer = BrokerInMemory(auto_create_topic_enable=True).connect()
    for command, _ in conversations(RequestCode.SEND_MESSAGE_V2):
        peer.send(command)
    assert [answer.code for answer in peer.received()] == [ResponseCode.SUCCESS] * 5
    return peer


def seen(answer: RemotingCommand) -> Any:
    """Return the parts of an answer that do not depend on the place of the records in the log."""
    keys = [message.properties["KEYS"] for message in iterate_messages(answer.body)]
    return answer.code, answer.remark, sorted(answer.ext_fields), keys


def recent(command: RemotingCommand) -> RemotingCommand:
    """The request with a beginning that is before the virtual clock's time, as the recording's was before its own."""
    command.ext_fields["beginTimestamp"] = "0"
    return command


def test_answers_are_apaches(peer: Peer) -> None:
    recorded = conversations(RequestCode.QUERY_MESSAGE)
    answers = []
    for command, _ in recorded:
        peer.send(recent(command))
        answers += peer.received()
    assert [seen(answer) for answer in answers] == [seen(answer) for _, answer in recorded]


def test_index_end_is_the_last_message(peer: Peer) -> None:
    answer = peer.ask(RequestCode.QUERY_MESSAGE, fields(key="uniq4"))
    (message,) = iterate_messages(answer.body)
    assert answer.ext_fields == {
        "indexLastUpdateTimestamp": str(message.store_timestamp),
        "indexLastUpdatePhyoffset": str(message.physical_offset),
    }


def fields(**more: str) -> dict[str, str]:
    values = {"topic": "CapQuery", "key": "dup", "maxNum": "10", "beginTimestamp": "0", "endTimestamp": str(1 << 62)}
    return values | more


@pytest.mark.parametrize(
    ("most", "unique", "keys"),
    [
        ("2", "false", ["dup shared1", "dup shared2"]),
        ("0", "false", []),
        ("0", "true", ["dup shared0", "dup shared1", "dup shared2"]),
    ],
    ids=["newest two", "none", "by unique key the number is the broker's"],
)
def test_number_of_records(peer: Peer, most: str, unique: str, keys: list[str]) -> None:
    answer = peer.ask(RequestCode.QUERY_MESSAGE, fields(maxNum=most) | {"_UNIQUE_KEY_QUERY": unique})
    assert [message.properties["KEYS"] for message in iterate_messages(answer.body)] == keys


def test_other_topics_are_not_found(peer: Peer) -> None:
    answer = peer.ask(RequestCode.QUERY_MESSAGE, fields(topic="Other"))
    assert (answer.code, answer.remark) == (
        ResponseCode.QUERY_NOT_FOUND,
        "can not find message, maybe time range not correct",
    )


def test_times_outside_of_the_range_are_not_found(peer: Peer) -> None:
    answer = peer.ask(RequestCode.QUERY_MESSAGE, fields(endTimestamp="1000"))
    assert answer.code == ResponseCode.QUERY_NOT_FOUND
