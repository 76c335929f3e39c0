"""Brokers that ask each other, and find each other again."""

from __future__ import annotations

import pytest
from twisted.internet import defer

from twisted_mq.broker.topics.other_brokers import OtherBrokers
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingConnectError


class Routes:
    """A broker that was at `heard`, and is at `current`."""

    def __init__(self, heard: str, current: str) -> None:
        self.heard = heard
        self.current = current

    async def master(self, broker_name: str, topic: str) -> str:
        return self.heard

    def update(self, topic: str) -> defer.Deferred[None]:
        self.heard = self.current
        return defer.succeed(None)


def ask(routes: Routes, reached: str) -> tuple[RemotingCommand, list[str]]:
    tried: list[str] = []

    def invoke(address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        tried.append(address)
        if address != reached:
            return defer.fail(RemotingConnectError(f"connect to {address} failed"))
        return defer.succeed(command.answer(0, command.ext_fields["bname"]))

    others = OtherBrokers(routes, invoke)  # type: ignore[arg-type]
    found: list[RemotingCommand] = []
    asked = defer.Deferred.fromCoroutine(others.ask("b", "T", 11, {"topic": "T", "AccessKey": "who asks"}))
    failed: list[BaseException] = []
    asked.addCallbacks(found.append, lambda reason: failed.append(reason.value))
    if failed:
        raise failed[0]
    return found[0], tried


def test_a_broker_that_came_back_elsewhere_is_found_by_its_topics_route() -> None:
    answer, tried = ask(Routes("old:1", "new:2"), "new:2")
    assert (answer.remark, tried) == ("b", ["old:1", "new:2"])


def test_one_that_is_gone_is_asked_once_and_named() -> None:
    routes = Routes("old:1", "old:1")
    with pytest.raises(BrokerError, match="broker b not reached: connect to old:1 failed"):
        ask(routes, "new:2")
