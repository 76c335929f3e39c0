"""Notices of a new lowest id: few at a time, each broker once at a time, a flood of changes as one."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from twisted_mq.namesrv.lowest_id_notices import MOST_AT_ONCE, LowestIdNotices
from twisted_mq.namesrv.route_values import MinBrokerIdChange
from twisted_mq.protocol.wire.command import RemotingCommand

BROKERS = 999
CHANGES = 1000


class Brokers:
    """Notes what is sent; `reach` and `miss` end what is on its way."""

    def __init__(self) -> None:
        self.on_their_way: dict[str, Deferred[Any]] = {}
        self.told: dict[str, list[str]] = {}
        self.notices = LowestIdNotices(self.send_one_way)

    def send_one_way(self, address: str, command: RemotingCommand) -> Deferred[None]:
        assert address not in self.on_their_way
        self.told.setdefault(address, []).append(command.ext_fields["minBrokerAddr"])
        sent = self.on_their_way[address] = Deferred()
        return sent

    def end(self, address: str, result: object = None) -> None:
        self.on_their_way.pop(address).callback(result)


def change(number: int, *addresses: str) -> MinBrokerIdChange:
    return MinBrokerIdChange(tell=addresses, min_broker_id=number, min_broker_address=f"lowest-{number}")


def test_all_brokers_are_told() -> None:
    brokers = Brokers()
    brokers.notices.tell(change(1, "a", "b"))
    assert brokers.told == {"a": ["lowest-1"], "b": ["lowest-1"]}


def test_a_flood_of_changes_has_few_on_their_way_and_tells_each_broker_the_last() -> None:
    brokers, addresses = Brokers(), [f"b{number}:1" for number in range(BROKERS)]
    for number in range(CHANGES):
        brokers.notices.tell(change(number, *addresses))
    assert len(brokers.on_their_way) == MOST_AT_ONCE
    while brokers.on_their_way:
        assert len(brokers.on_their_way) <= MOST_AT_ONCE
        brokers.end(next(iter(brokers.on_their_way)))
    assert {told[-1] for told in brokers.told.values()} == {f"lowest-{CHANGES - 1}"}
    assert (len(brokers.told), max(map(len, brokers.told.values()))) == (BROKERS, 2)


def test_brokers_that_cannot_be_reached_do_not_keep_others_from_being_told() -> None:
    brokers, addresses = Brokers(), [f"b{number}:1" for number in range(2 * MOST_AT_ONCE)]
    brokers.notices.tell(change(1, *addresses))
    for address in addresses[:MOST_AT_ONCE]:
        brokers.on_their_way.pop(address).errback(ConnectionError("refused"))
    assert list(brokers.on_their_way) == addresses[MOST_AT_ONCE:]


def test_very_many_that_are_told_at_once_are_told_in_one_loop() -> None:
    told: list[str] = []

    def send_one_way(address: str, command: RemotingCommand) -> Deferred[None]:
        told.append(address)
        return succeed(None)

    addresses = [f"b{number}:1" for number in range(20_000)]
    LowestIdNotices(send_one_way).tell(change(1, *addresses))
    assert told == addresses


def test_nobody_is_told_after_the_stop() -> None:
    brokers = Brokers()
    brokers.notices.tell(change(1, *(f"b{number}:1" for number in range(MOST_AT_ONCE + 1))))
    brokers.notices.stop()
    brokers.notices.tell(change(2, "late:1"))
    brokers.end("b0:1")
    assert len(brokers.told) == MOST_AT_ONCE
