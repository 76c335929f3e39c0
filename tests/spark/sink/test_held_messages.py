"""Messages that are held back: all of them again, and a digest of which they are."""

from __future__ import annotations

import contextlib

import pytest

from twisted_mq.spark.sink.columns import Outgoing
from twisted_mq.spark.sink.held_messages import HeldMessages


def message(row: int, body: bytes, source: str = "q-0-1") -> Outgoing:
    return Outgoing(row, "T", body, b"UNIQ_KEY\x01%s-%d\x02" % (source.encode(), row), None, False)


def held(*messages: Outgoing, source: str = "q-0-1") -> HeldMessages:
    found = HeldMessages(source)
    for one in messages:
        found.add(one)
    return found


@pytest.mark.parametrize("most_bytes", [0, 60, 1 << 20], ids=["each in the file", "some in the file", "in memory"])
def test_messages_come_again_in_order(most_bytes: int) -> None:
    given = [message(number, b"%d" % number) for number in range(20)]
    with contextlib.closing(HeldMessages("q-0-1", most_bytes)) as found:
        for one in given:
            found.add(one)
        assert list(found) == given == list(found)


def test_the_digest_is_of_the_messages_whatever_their_order() -> None:
    one = held(message(0, b"a"), message(1, b"b")).digest
    assert one == held(message(0, b"b"), message(1, b"a")).digest
    assert one != held(message(0, b"a"), message(1, b"a")).digest
    assert one != held(message(0, b"a")).digest
    assert one != held(message(0, b"a", "q-1-1"), message(1, b"b", "q-1-1"), source="q-1-1").digest
