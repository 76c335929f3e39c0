"""Addresses of access control 1.0."""

from __future__ import annotations

import pytest

from twisted_mq.access.white_list import is_listed, white_list


@pytest.mark.parametrize(
    ("line", "listed", "others"),
    [
        ("*", ["10.0.0.1", "::1"], ["", "nobody"]),
        ("*.*.*.*", ["10.0.0.1"], ["x"]),
        ("10.0.0.1", ["10.0.0.1"], ["10.0.0.2", "::1"]),
        ("10.0.0.1,10.0.0.3", ["10.0.0.1", "10.0.0.3"], ["10.0.0.2"]),
        ("10.0.0.{1,3}", ["10.0.0.1", "10.0.0.3"], ["10.0.0.2"]),
        ("10.0.*.*", ["10.0.9.255"], ["10.1.0.0"]),
        ("10.0.1-20.*", ["10.0.1.0", "10.0.20.9"], ["10.0.0.1", "10.0.21.0"]),
        ("10.0.0.5-5", ["10.0.0.5"], ["10.0.0.4"]),
        ("::1", ["::1", "0:0:0:0:0:0:0:1"], ["::2", "127.0.0.1"]),
        ("2001:db8::5-1F:*", ["2001:db8::1f:9"], ["2001:db8::20:9", "2001:db8:1::6:9"]),
        ("1:2:3:4:5:6:7:{8,9}", ["1:2:3:4:5:6:7:9"], ["1:2:3:4:5:6:7:a"]),
        ("", [], ["10.0.0.1"]),
        (None, [], ["10.0.0.1"]),
    ],
)
def test_what_is_listed(line: str | None, listed: list[str], others: list[str]) -> None:
    patterns = white_list([line])
    assert [address for address in listed + others if is_listed(address, patterns)] == listed


@pytest.mark.parametrize(
    "line", ["10.0.0", "10.0.0.256", "10.0.0.9-1", "10.0.0.x", "10.0.0.-5", "1:2:3", "g::1", "10.0.0.{1,x}", "1::2::3"]
)
def test_what_is_no_address_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="NetAddress examine Exception netAddress is ") as caught:
        white_list([line])
    assert line in str(caught.value)
