"""Cached decisions about allowed requests, and decisions that are never cached."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from twisted_mq.access.guard import MOST_ALLOWED, MOST_CHARACTERS, Allowed, guarded
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.rights import RIGHTS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import Credentials, is_signed, sign

SEND, PULL = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE


@attrs.define
class Source:
    version: int = 0


@attrs.define(eq=False)
class Asked:
    """A check that allows topics, and notes what it is asked."""

    topics: set[str]
    key: str | None = "secret"
    remembers: bool = True
    source: Source = attrs.field(factory=Source)
    asked: list[str] = attrs.field(factory=list)

    def check(self, channel: Any, command: RemotingCommand) -> None:
        topic = command.ext_fields["b"]
        self.asked.append(topic)
        if topic not in self.topics or (self.key is not None and not is_signed(command, self.key)):
            raise BrokerError(ResponseCode.NO_PERMISSION, topic)

    def secret(self, channel: Any, command: RemotingCommand) -> str | None:
        return self.key


@attrs.define
class Peer:
    remote_address: tuple[str, int] = ("127.0.0.1", 1)
    account: str | None = None

    def proven(self, account: str) -> None:
        self.account = account


def send(topic: str, secret: str = "secret") -> RemotingCommand:
    command = RemotingCommand.request(SEND, {"b": topic}, b"x")
    sign(command, Credentials("ada", secret))
    return command


def served(*checks: Any) -> Any:
    table: Any = {SEND: lambda channel, command: command.ext_fields["b"].encode()}
    return guarded(table, checks)[SEND]


def test_what_was_allowed_is_not_asked_again_until_the_source_changes() -> None:
    check = Asked({"T"})
    serve = served(check)
    assert [serve(Peer(), send("T")) for _ in range(3)] == [b"T"] * 3
    assert check.asked == ["T"]
    check.topics.clear()
    check.source.version += 1
    with pytest.raises(BrokerError):
        serve(Peer(), send("T"))
    assert check.asked == ["T", "T"]


def test_the_signature_of_each_request_is_looked_at() -> None:
    check = Asked({"T"})
    serve = served(check)
    serve(Peer(), send("T"))
    changed = send("T")
    changed.body = b"y"
    unsigned = RemotingCommand.request(SEND, {"b": "T", "AccessKey": "ada"}, b"x")
    for request in (send("T", "wrong"), changed, unsigned):
        with pytest.raises(BrokerError):
            serve(Peer(), request)


def test_another_topic_or_address_is_another_request() -> None:
    check = Asked({"T", "U"})
    serve = served(check)
    for peer, topic in ((Peer(), "T"), (Peer(), "U"), (Peer(("10.0.0.1", 1)), "T"), (Peer(), "T")):
        serve(peer, send(topic))
    assert check.asked == ["T", "U", "T"]


def test_a_refusal_is_asked_for_each_time_and_so_is_a_check_that_does_not_remember() -> None:
    refusing, forgetting = Asked(set()), Asked({"T"}, remembers=False)
    for _ in range(2):
        with pytest.raises(BrokerError):
            served(refusing)(Peer(), send("T"))
    serve = served(forgetting)
    assert [serve(Peer(), send("T")) for _ in range(2)] == [b"T"] * 2
    assert (refusing.asked, forgetting.asked) == (["T", "T"], ["T", "T"])


def test_where_nobody_signs_the_decision_is_all() -> None:
    check = Asked({"T"}, key=None)
    serve = served(check)
    assert [serve(Peer(), RemotingCommand.request(SEND, {"b": "T"})) for _ in range(2)] == [b"T"] * 2
    assert check.asked == ["T"]


def test_of_two_checks_both_have_to_allow_it_each_from_its_own_memory() -> None:
    first, second = Asked({"T", "U"}), Asked({"T"})
    serve = served(first, second)
    assert [serve(Peer(), send("T")) for _ in range(2)] == [b"T"] * 2
    for _ in range(2):
        with pytest.raises(BrokerError):
            serve(Peer(), send("U"))
    assert (first.asked, second.asked) == (["T", "U"], ["T", "U", "U"])


def test_the_memory_is_bounded() -> None:
    allowed = Allowed()
    for number in range(MOST_ALLOWED + 1):
        allowed.remember(("ada", 310, str(number), None, "::1"), "secret")
    assert len(allowed) == 1
    for place in (0, 2, 3):
        asked: Any = ["ada", 310, "T", "G", "::1"]
        asked[place] = "x" * MOST_CHARACTERS
        allowed.remember(tuple(asked), "secret")
    assert len(allowed) == 1


def test_only_requests_that_name_topic_and_group_in_fields_are_remembered() -> None:
    by_fields = {code: rights.fields for code, rights in RIGHTS.items() if rights.fields is not None}
    assert (by_fields[SEND], by_fields[PULL]) == (("b", ""), ("topic", "consumerGroup"))
    assert by_fields[RequestCode.GET_ROUTEINFO_BY_TOPIC] == ("topic", "")
    assert not [code for code in by_fields if RIGHTS[code].reads_body]
    assert {RequestCode.HEART_BEAT, RequestCode.GET_CONSUME_STATS, RequestCode.CLONE_GROUP_OFFSET}.isdisjoint(by_fields)


def test_a_connection_is_told_the_account_of_its_first_allowed_request() -> None:
    serve, peer = served(Asked({"T"})), Peer()
    with pytest.raises(BrokerError):
        serve(peer, send("T", "wrong"))
    assert peer.account is None
    serve(peer, send("T"))
    assert peer.account == "ada"
    again = Peer(peer.remote_address)
    serve(again, send("T"))
    assert again.account == "ada"
    unsigned = Peer()
    served(Asked({"T"}, key=None))(unsigned, send("T"))
    assert unsigned.account is None
