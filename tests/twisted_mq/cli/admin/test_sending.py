"""Sizes of messages that sending commands create."""

from __future__ import annotations

import pytest

from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.sending import body_size

MOST = 4 * 1024 * 1024


@pytest.mark.parametrize(("values", "size"), [({}, 128), ({"s": "0"}, 0), ({"s": str(MOST)}, MOST)])
def test_a_message_has_the_size_that_is_asked_for(values: dict[str, str], size: int) -> None:
    assert body_size(CommandLine(values)) == size


@pytest.mark.parametrize("size", ["-1", str(MOST + 1), "9" * 30])
def test_more_than_a_producer_sends_is_refused_before_it_is_made(size: str) -> None:
    with pytest.raises(UsageError, match=f"Option -s must be 0 to {MOST} bytes, got {size}"):
        body_size(CommandLine({"s": size}))
