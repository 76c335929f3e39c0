"""The requests of the recorded `errors` scenario, one after the other, get from our broker what they got from Apache's."""

from __future__ import annotations

import random

import pytest

from tests.support.broker import BrokerInMemory
from tests.support.captures import frames
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder

NOT_BROKERS = {103, 105, 101}
JAVA_TEXT = "java.lang"
"""Remarks with Java stack traces: ours name header, field and value instead."""


class AlwaysFirst(random.Random):
    """Picks the queue that Apache's broker happened to pick."""

    def randrange(self, *limits: int) -> int:
        return 0


def scenario() -> list[tuple[RemotingCommand, RemotingCommand]]:
    """(request, Apache's answer) of the frames that a broker serves, in order."""
    waiting: dict[int, RemotingCommand] = {}
    pairs = []
    for command in FrameDecoder().receive_data(frames("errors")):
        if not command.is_response:
            waiting[command.opaque] = command
        elif command.opaque in waiting:
            pairs.append((waiting.pop(command.opaque), command))
    return [(ask, answer) for ask, answer in pairs if ask.code not in NOT_BROKERS and not ask.is_one_way]


def comparable(answer: RemotingCommand) -> tuple[int, str | None, dict[str, str]]:
    """Return the parts that must agree: the code, the remark with normalized white space, the fields without ids that differ in
    each run."""
    remark = None if answer.remark is None or JAVA_TEXT in answer.remark else " ".join(answer.remark.split())
    fields = {key: value for key, value in answer.ext_fields.items() if key not in ("msgId", "transactionId")}
    return answer.code, remark, fields


def test_every_recorded_error_is_answered_as_apache_answers_it() -> None:
    broker = BrokerInMemory(max_message_size=131072)
    broker.controller.random = AlwaysFirst()
    peer = broker.connect()
    compared = differences = 0
    for ask, theirs in scenario():
        if ask.code == 9999:
            ask.serialize_type = 0
        peer.send(RemotingCommand(ask.code, 0, 0, "JAVA", 479, None, ask.body, 0, ext_fields=dict(ask.ext_fields)))
        (ours,) = peer.received()
        compared += 1
        if (theirs.remark and JAVA_TEXT in theirs.remark) or (theirs.remark and "JSONException" in theirs.remark):
            assert (ours.code, bool(ours.remark)) == (theirs.code, True)
            continue
        if theirs.code == ResponseCode.QUERY_NOT_FOUND and comparable(ours) == (0, None, {"offset": "0"}):
            continue  # an empty queue, see ConsumerManageProcessor
        if comparable(ours) != comparable(theirs):
            differences += 1
            print(ask.code, ask.ext_fields, "\n  ours  ", comparable(ours), "\n  theirs", comparable(theirs))
    assert (compared > 30, differences) == (True, 0)


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"b": "T"}, "SendMessageRequestHeaderV2.a: required, but missing, got None"),
        (
            {"a": "P", "b": "T", "c": "D", "d": "notanumber", "e": "0", "f": "0", "g": "0", "h": "0"},
            "SendMessageRequestHeaderV2.d: not of type",
        ),
        (
            {"a": "P", "b": "T", "c": "D", "d": "4294967296", "e": "0", "f": "0", "g": "0", "h": "0"},
            "SendMessageRequestHeaderV2.d: not in the range of 32 bits, got '4294967296'",
        ),
    ],
)
def test_bad_header_is_named_with_field_and_value(fields: dict[str, str], remark: str) -> None:
    answer = BrokerInMemory().connect().ask(310, fields, b"x")
    assert answer.code == 1
    assert (answer.remark or "").startswith(remark)
