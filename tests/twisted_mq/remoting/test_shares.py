"""Tests of which address gives way to which when there is no room."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from twisted_mq.remoting.budget import may_have
from twisted_mq.remoting.shares import (
    MOST_KNOWN,
    PROOF_SECONDS,
    Served,
    Shares,
    address_of,
    share_of_account,
)


def shares_of(proven: str = "", reserve: int = 1, **connections: int) -> Shares[str]:
    """Shares of addresses that are one letter, each with connections named by it and a digit."""
    shares: Shares[str] = Shares(lambda address: address in proven, reserve)
    for name, count in connections.items():
        for number in range(count):
            shares.add(name[0], name, f"{name} {number}")
    return shares


@pytest.mark.parametrize(
    ("connections", "newcomer", "expected"),
    [
        ({"a1": 3, "b1": 1}, "c1", "a1 0"),
        ({"a1": 2, "a2": 3, "b1": 4}, "c1", "a2 0"),
        ({"a1": 3, "b1": 3}, "b1", None),
        ({"a1": 3, "b1": 1}, "a1", None),
        ({"a1": 3, "b1": 1}, "a2", "a1 0"),
        ({"a1": 1, "b1": 1}, "c1", None),
        ({"a1": 3, "b1": 1}, "b1", "a1 0"),
        ({"a1": 2, "b1": 1}, "b1", None),
        ({}, "a1", None),
    ],
)
def test_the_oldest_of_the_largest_share_gives_way_to_a_smaller_one(connections, newcomer, expected) -> None:
    assert shares_of(**connections).gives_way(newcomer[0], newcomer) == expected


@pytest.mark.parametrize(
    ("proven", "reserve", "connections", "newcomer", "expected"),
    [
        ("p", 1, {"a1": 1, "b1": 1}, "p1", "a1 0"),
        ("p", 1, {"p1": 1, "q1": 1}, "a1", None),
        ("p", 2, {"p1": 4, "b1": 3}, "a1", "b1 0"),
        ("p", 2, {"p1": 9, "b1": 3}, "a1", "p1 0"),
        ("pq", 1, {"p1": 1, "q1": 1}, "p2", None),
    ],
)
def test_a_reserve_does_not_count(proven, reserve, connections, newcomer, expected) -> None:
    assert shares_of(proven, reserve, **connections).gives_way(newcomer[0], newcomer) == expected


def test_what_is_given_back_counts_no_more() -> None:
    shares = shares_of(a1=2, b1=1)
    for name in ("a1 0", "a1 0", "a1 1", "never there"):
        shares.discard("a", "a1", name)
    shares.discard("z", "z1", "nothing")
    assert (shares._of, shares._counts) == ({"b": {"b1": {"b1 0": None}}}, {"b": 1})


@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_one_address_leaves_half_and_many_leave_one_another_something(limit: int) -> None:
    held: list[int] = []
    for _ in range(limit.bit_length() + 1):
        mine = 0
        while may_have(mine, sum(held) + mine, limit):
            mine += 1
        held.append(mine)
    assert (held[0], sum(held), held[-1]) == ((limit + 1) // 2, limit, 0)


def test_an_address_that_was_served_a_minute_ago_is_proven() -> None:
    clock = Clock()
    served = Served(clock)
    served.note("a")
    clock.advance(PROOF_SECONDS - 1)
    served.note("a")
    assert not served.is_proven("a")
    clock.advance(1)
    assert (served.is_proven("a"), served.is_proven("b")) == (True, False)
    for number in range(MOST_KNOWN + 10):
        served.note(f"stranger {number}")
    assert (served.is_proven("a"), len(served._since)) == (True, MOST_KNOWN)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("broker-a", "broker-a"),
    ],
)
def test_an_address_is_a_host_or_a_network_of_ipv6(host: str, address: str) -> None:
    assert address_of(host) == address


def test_reserves_earned_by_patience_are_at_most_half_of_all() -> None:
    shares: Shares[str] = Shares(lambda address: address != "new", 10, earned=True)
    for address in ("a", "b", "c", "d"):
        for number in range(10):
            shares.add(address, address, f"{address}{number}")
    assert shares.gives_way("new", "new 1") == "a0"
    shares.earned = False
    assert shares.gives_way("new", "new 1") is None


def test_addresses_prove_nothing_once_accounts_are_known() -> None:
    clock = Clock()
    served = Served(clock)
    served.note("10.0.0.1")
    clock.advance(PROOF_SECONDS)
    assert served.is_proven("10.0.0.1")
    served.note(share_of_account("alice"))
    served.note("10.0.0.2")
    assert not served.is_proven("10.0.0.1")
    clock.advance(PROOF_SECONDS)
    assert [served.is_proven(one) for one in (share_of_account("alice"), "10.0.0.2")] == [True, False]


def test_the_oldest_of_an_address_is_that_of_its_oldest_connection() -> None:
    shares = shares_of(a1=2, a2=1)
    assert (shares.oldest("a"), shares.oldest("b")) == ("a1 0", None)
