"""Recorded sessions of Apache's Java client, replayed against our broker: codes, remarks, fields and messages agree.

Each connection of the recording gets its own, and time goes as it did then. What differs from run to run (ids, times of
storing) is left out, and so is what a name server was asked. A pull that was woken may have found more than ours did.
"""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.support.captures import frame_index, frames
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame

DIFFERS = {"msgId", "transactionId", "timestamp", "indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"}
SENDS = {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
MESSAGES = {RequestCode.PULL_MESSAGE, RequestCode.QUERY_MESSAGE, RequestCode.VIEW_MESSAGE_BY_ID}

ENDS = {"nextBeginOffset", "maxOffset"}

Key = tuple[int, int]
Asked = tuple[int, int, RemotingCommand]
"""When, in ms since the session began; on which connection; what."""


class AlwaysFirst(random.Random):
    """Picks the queue that Apache's broker happened to pick."""

    def randrange(self, *limits: int) -> int:
        return 0


@attrs.define
class Session:
    """Requests and answers by connection and opaque, and the notices to each connection."""

    requests: dict[Key, RemotingCommand] = attrs.field(factory=dict)
    answers: dict[Key, RemotingCommand] = attrs.field(factory=dict)
    notices: list[tuple[int, int, dict[str, str]]] = attrs.field(factory=list)

    def take(self, connection: int, command: RemotingCommand) -> None:
        """Note a frame from the broker."""
        if command.is_response:
            self.answers[connection, command.opaque] = command
        else:
            self.notices.append((connection, command.code, dict(command.ext_fields)))

    def places(self) -> dict[Key, int]:
        """Return the place in the log of each message that was sent alone."""
        return {
            key: int(answer.ext_fields["msgId"][-16:], 16)
            for key, answer in self.answers.items()
            if self.requests[key].code == RequestCode.SEND_MESSAGE_V2
        }


def recording(scenario: str) -> tuple[list[Asked], Session]:
    """The requests to the broker in their order, and the session as Apache's broker had it."""
    asked, theirs = [], Session()
    commands = FrameDecoder().receive_data(frames(scenario))
    for line, command in zip(frame_index(scenario), commands, strict=True):
        connection = int(line["connection"])
        if line["direction"] == "client->broker":
            theirs.requests[connection, command.opaque] = command
            asked.append((int(line["t_ms"]), connection, command))
        elif line["direction"] == "broker->client":
            theirs.take(connection, command)
    return asked, theirs


def replayed(asked: list[Asked], theirs: Session) -> Session:
    """The session as our broker has it; what is viewed by its place in the log is viewed at the place it has here."""
    broker, ours, peers = BrokerInMemory(), Session(requests=theirs.requests), dict[int, Peer]()
    broker.controller.random = AlwaysFirst()
    begin = next(int(one.ext_fields["g"]) - at_ms for at_ms, _, one in asked if one.code in SENDS)
    for at_ms, connection, command in asked:
        broker.clock.advance(max(0.0, (begin + at_ms) / 1000 - broker.clock.seconds()))
        broker.controller.polling.answer_expired(broker.now_ms())
        if command.code == RequestCode.VIEW_MESSAGE_BY_ID:
            moved = {place: ours.places()[key] for key, place in theirs.places().items()}
            fields = {**command.ext_fields, "offset": str(moved[int(command.ext_fields["offset"])])}
            opaque, command = command.opaque, RemotingCommand.request(command.code, fields)
            command.opaque = opaque
        peer = peers.setdefault(connection, broker.connect())
        peer.channel.dataReceived(encode_frame(command))
        for number, other in peers.items():
            for answer in other.received():
                ours.take(number, answer)
    return ours


def comparable(request: RemotingCommand, answer: RemotingCommand | None) -> Any:
    """Return the parts of an answer that must agree."""
    if answer is None:
        return None
    remark = None if answer.remark is None else " ".join(answer.remark.split())
    fields = {key: value for key, value in answer.ext_fields.items() if key not in DIFFERS}
    body: Any = answer.body
    if request.code in MESSAGES:
        body = [(one.topic, one.queue_id, one.queue_offset, one.body) for one in iterate_messages(answer.body)]
    return answer.code, remark, fields, body


def agree(mine: Any, apaches: Any) -> bool:
    """Return True if they are equal, or Apache's has the same messages and some that came directly after.

    For an empty queue Apache returns no offset, ours returns 0: without an offset, a client asks for the greatest one, and misses
    messages that came in between.
    """
    if apaches and apaches[0] == ResponseCode.QUERY_NOT_FOUND and mine:
        return bool(mine == (ResponseCode.SUCCESS, None, {"offset": "0"}, b"") or mine == apaches)
    if not mine or not apaches or not mine[3] or type(mine[3]) is bytes:
        return bool(mine == apaches)
    fields = [{key: value for key, value in one[2].items() if key not in ENDS} for one in (mine, apaches)]
    same = mine[:2] == apaches[:2] and fields[0] == fields[1]
    return bool(same and mine[3] == apaches[3][: len(mine[3])])


@pytest.mark.parametrize(
    "scenario",
    [
        "push_consumer_concurrent",
        "push_consumer_orderly",
        "pull_consumer",
        "producer_batch",
        "consumer_tag_filter",
        "query_by_key_and_id",
        "producer_sync",
        "producer_async_oneway",
        "push_consumer_broadcast",
        "rocketmq_serialized",
        "message_trace",
    ],
)
def test_a_recorded_session_goes_as_with_apaches_broker(scenario: str) -> None:
    asked, theirs = recording(scenario)
    ours = replayed(asked, theirs)
    differences = []
    for key, request in theirs.requests.items():
        if request.is_one_way:
            continue
        mine, apaches = comparable(request, ours.answers.get(key)), comparable(request, theirs.answers.get(key))
        if not agree(mine, apaches):
            differences.append(f"{request.code} {dict(request.ext_fields)}\n  ours   {mine}\n  apache {apaches}")
    assert not differences, "\n".join(differences)
    assert sorted(ours.notices, key=str) == sorted(theirs.notices, key=str)
