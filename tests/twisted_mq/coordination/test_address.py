"""Address of a coordinator, as a text."""

from __future__ import annotations

import re

import pytest

from twisted_mq.coordination.address import BadAddress, CoordinatorAddress, parse_address

ADDRESSES = {
    "zk1:2181": CoordinatorAddress(("zk1:2181",)),
    "zk1:2181,zk2:2182 , 10.0.0.3:2183/mq/prod": CoordinatorAddress(
        ("zk1:2181", "zk2:2182", "10.0.0.3:2183"), "/mq/prod"
    ),
    "zk1": CoordinatorAddress(("zk1:2181",)),
    "zk1:2181/": CoordinatorAddress(("zk1:2181",)),
    "[::1]:2181,[fe80::1%eth0]/mq/": CoordinatorAddress(("[::1]:2181", "[fe80::1%eth0]:2181"), "/mq"),
    "memory": CoordinatorAddress(()),
    "memory/mq": CoordinatorAddress((), "/mq"),
}

REFUSED = {
    "": "'' is not HOST:PORT",
    "/mq": "'' is not HOST:PORT",
    "zk1:2181,": "'' is not HOST:PORT",
    "zk1:0": "'zk1:0' is not",
    "zk1:65536": "'zk1:65536' is not",
    "zk1:port": "'zk1:port' is not",
    "::1:2181": "'::1:2181' is not",
    "user@zk1:2181": "'user@zk1:2181' is not",
    "zk1:2181//mq": "must begin with /",
    "zk1:2181/mq/../x": "must begin with /",
    "zk1:2181/a\x07": "a character that ZooKeeper refuses",
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_an_address_is_understood(text: str) -> None:
    assert parse_address(text) == ADDRESSES[text]
    assert parse_address(str(ADDRESSES[text])) == ADDRESSES[text]
    assert ADDRESSES[text].in_memory == text.startswith("memory")


@pytest.mark.parametrize("text", REFUSED)
def test_what_makes_no_sense_is_named(text: str) -> None:
    with pytest.raises(BadAddress, match=f"coordinator {re.escape(repr(text))}.*{REFUSED[text]}"):
        parse_address(text)
