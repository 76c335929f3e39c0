"""The connections of one server: which one gives way past the limit."""

from __future__ import annotations

import attrs
from twisted.internet.task import Clock

from twisted_mq.remoting.connection_shares import ConnectionShares
from twisted_mq.remoting.shares import share_of_account


@attrs.define(eq=False)
class Connection:
    """A connection of an address."""

    share_address: str
    why: str = ""

    def cut(self, reason: str) -> None:
        self.why = reason


def filled(*addresses: str, most: int = 3) -> tuple[ConnectionShares[Connection], list[Connection]]:
    shares: ConnectionShares[Connection] = ConnectionShares(Clock(), most)
    connections = [Connection(address) for address in addresses]
    for one in connections:
        shares.add(one)
    return shares, connections


def test_the_largest_share_gives_way_and_says_why() -> None:
    shares, (first, *others) = filled("10.0.0.1", "10.0.0.1", "10.0.0.2")
    assert shares.has_room("10.0.0.3")
    assert (list(shares), first.why) == (others, "3 are open and its address has the most; closed for 10.0.0.3")


def test_an_address_alone_takes_its_own_place_only_where_that_is_wanted() -> None:
    shares, (first, *others) = filled("10.0.0.1", "10.0.0.1", "10.0.0.1")
    assert not shares.has_room("10.0.0.1")
    assert shares.has_room("10.0.0.1", its_oldest=True)
    assert (list(shares), bool(first.why)) == (others, True)


def test_busy_connections_are_cut_last() -> None:
    shares, (first, second, third) = filled("10.0.0.1", "10.0.0.1", "10.0.0.2")
    shares.set_busy(first, busy=True)
    shares.set_busy(second, busy=True)
    assert shares.has_room("10.0.0.3", its_oldest=True) and third.why
    shares.add(Connection("10.0.0.3"))
    shares.set_busy(next(one for one in shares if one.share_address == "10.0.0.3"), busy=True)
    assert not shares.has_room("10.0.0.4")
    assert shares.has_room("10.0.0.4", its_oldest=True) and first.why
    shares.set_busy(second, busy=False)
    assert len(shares) == 2


def test_a_connection_whose_share_is_an_accounts_counts_there() -> None:
    shares, (first, second, third) = filled("10.0.0.1", "10.0.0.1", "10.0.0.2")
    before, first.share_address = first.share_address, share_of_account("ada")
    shares.moved(first, before)
    assert not shares.has_room("10.0.0.3")
    shares.discard(first)
    assert (list(shares), shares.has_room("10.0.0.3")) == ([second, third], True)
