"""Every gRPC call that names a place: a receipt handle, a transaction id or a recall handle. Both modes of the proxy serve them.

One table for the page in docs/reference and for the test that sends the hostile values of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from twisted_mq.protocol.names.recall_handle import RecallHandle

FAR = 1 << 62
CHANGES = (
    (0, "-1"), (0, str(FAR)), (4, "7"), (4, "z"), (5, "broker-z"), (6, "99"), (6, "-1"), (7, "99"), (7, str(FAR))
)  # fmt: skip
"""Parts of a receipt handle, with values that they cannot have."""


@attrs.frozen
class Known:
    """Data that a client of the group `thieves` has: the owner's topic, handle, transaction, and other topics' places."""

    topic: str
    thieves: str
    broker_name: str
    handle: str
    transaction: str
    places: tuple[int, ...]
    now_ms: int

    def handles(self) -> Iterable[str]:
        """Receipt handles with places of others, of no record, and of no queue."""
        parts = self.handle.split(" ")
        for place in (*self.places, 0, 1, FAR, -1):
            yield " ".join([*parts[:8], str(place)])
        for part, value in CHANGES:
            yield " ".join([*parts[:part], value, *parts[part + 1 :]])
        yield from ("", "x", "1 2 3", " ".join(["9" * 30] * 9))


@attrs.frozen
class NamedInCall:
    """A call that names a place: its field, what that is the place of, and how it is proved."""

    field: str
    place_of: str
    proof: str
    hostile: Callable[[Known], Iterable[dict[str, Any]]]


def _named(known: Known) -> dict[str, Any]:
    return {"group": {"name": known.thieves}, "topic": {"name": known.topic}}


def _acks(known: Known) -> Iterable[dict[str, Any]]:
    for handle in known.handles():
        yield _named(known) | {"entries": [{"message_id": "m", "receipt_handle": handle}]}


def _changes(known: Known) -> Iterable[dict[str, Any]]:
    for handle in known.handles():
        yield _named(known) | {"receipt_handle": handle, "message_id": "m", "invisible_duration": {"seconds": 60}}


def _forwards(known: Known) -> Iterable[dict[str, Any]]:
    for handle in known.handles():
        yield _named(known) | {
            "receipt_handle": handle,
            "message_id": "m",
            "delivery_attempt": 1,
            "max_delivery_attempts": 1,
        }


def _ends(known: Known) -> Iterable[dict[str, Any]]:
    for transaction in ("x", *map(str, known.places), "0", str(FAR)):
        for resolution in (1, 2):
            yield {
                "topic": {"name": known.topic}, "message_id": "m", "transaction_id": transaction, "resolution": resolution,
                "source": 1,
            }  # fmt: skip


def _recalls(known: Known) -> Iterable[dict[str, Any]]:
    for name in (known.broker_name, "broker-z"):
        handle = RecallHandle(
            topic=known.topic, broker_name=name, timestamp=str(known.now_ms + 60_000), unique_key="AA" * 16
        )
        yield {"topic": {"name": known.topic}, "recall_handle": handle.encode()}
    yield {"topic": {"name": known.topic}, "recall_handle": "x"}


_RECEIPT = "the broker's check point of the receipt's queue, offset and time, of the caller's own group"
NAMED_IN_CALLS = {
    "AckMessage": NamedInCall("entries.receipt_handle", "messages that were popped", _RECEIPT, _acks),
    "ChangeInvisibleDuration": NamedInCall("receipt_handle", "a message that was popped", _RECEIPT, _changes),
    "ForwardMessageToDeadLetterQueue": NamedInCall(
        "receipt_handle",
        "a record in the log",
        "as CONSUMER_SEND_MSG_BACK: a queue entry of the record's own topic and queue names the offset",
        _forwards,
    ),
    "EndTransaction": NamedInCall(
        "transaction_id",
        "a half message",
        "the proxy keeps its place for the client that sent it, or was asked about it; then as END_TRANSACTION",
        _ends,
    ),
    "RecallMessage": NamedInCall(
        "recall_handle", "a message that waits", "as RECALL_MESSAGE: the timer's record of that topic and id", _recalls
    ),
}  # fmt: skip
