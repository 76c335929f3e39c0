"""Requests with one fault, made from the declared headers: brokers of either kind refuse them alike.

A good request has a value for each field that its header requires; a bad one lacks one of them, has a word for a number, or a
number out of range. Others name something that does not exist, or have a damaged body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import attrs

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers.fields import FieldKind
from twisted_mq.protocol.requests.registry import REQUESTS, Payload

OUT_OF_RANGE = {FieldKind.INT32: (str(-(2**31)), str(2**31 - 1)), FieldKind.INT64: (str(-(2**63)), str(2**63 - 1))}
GARBAGE = b"\0{not json"
_NO_NUMBER, _NO_BODY = "zero", "no body"
_TOPICS = ("topic", "originTopic", "b")
_GROUPS = ("consumerGroup", "group", "groupName", "producerGroup", "srcGroup", "destGroup")
_VALUES = {
    "perm": "6", "readQueueNums": "4", "writeQueueNums": "4", "defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG",
    "commitOrRollback": "8", "maxMsgNums": "1", "subscription": "*", "c": "TBW102", "d": "4", "count": "1",
    "defaultTopicQueueNums": "4",
}  # fmt: skip
_TYPES = {
    FieldKind.TEXT: "nothing",
    FieldKind.INT32: "0",
    FieldKind.INT64: "0",
    FieldKind.BOOLEAN: "false",
    FieldKind.BOUNDARY: "LOWER",
}


@attrs.frozen
class BadRequest:
    """`what` is wrong; `fields` and `body` as they are sent."""

    code: RequestCode
    what: str
    fields: dict[str, str]
    body: bytes = b""

    @property
    def name(self) -> str:
        return f"{self.code.name} with {self.what}"


def is_malformed(request: BadRequest) -> bool:
    """Return True if a required field is missing or is not a number."""
    return request.what.endswith(f"={_NO_NUMBER}") or (request.what.startswith("no ") and request.what != _NO_BODY)


def bad_requests(codes: Collection[int], topic: str, group: str) -> Iterator[BadRequest]:
    """All bad requests of these codes but those between brokers; `topic` and `group` exist."""
    for code in sorted(code for code, spec in REQUESTS.items() if code in codes and spec.tier != "ha"):
        header = REQUESTS[code].request_header
        declared = [] if header is None else list(attrs.fields(header))
        good = {one.metadata["wire"]: good_value(one, topic, group) for one in declared if one.default is attrs.NOTHING}
        yield from _of_fields(code, declared, good)
        if REQUESTS[code].request_body not in (None, Payload.MESSAGE_BODY):
            yield BadRequest(code, "a damaged body", good, GARBAGE)
            yield BadRequest(code, _NO_BODY, good)


def _of_fields(code: RequestCode, declared: list[attrs.Attribute[Any]], good: dict[str, str]) -> Iterator[BadRequest]:
    for one in declared:
        wire, kind = one.metadata["wire"], one.metadata["kind"]
        if wire not in good:
            continue
        yield BadRequest(code, f"no {wire}", {key: value for key, value in good.items() if key != wire}, b"x")
        if kind in OUT_OF_RANGE:
            for value in (_NO_NUMBER, *OUT_OF_RANGE[kind]):
                yield BadRequest(code, f"{wire}={value}", good | {wire: value}, b"x")
        if wire in _TOPICS:
            for value in ("NoSuchTopic", "bad topic!", ""):
                yield BadRequest(code, f"{wire}={value!r}", good | {wire: value}, b"x")
        if wire in _GROUPS:
            for value in ("NoSuchGroup", "bad group!", ""):
                yield BadRequest(code, f"{wire}={value!r}", good | {wire: value}, b"x")


def good_value(field: attrs.Attribute[Any], topic: str, group: str) -> str:
    """A value that a field of a header takes."""
    wire = field.metadata["wire"]
    if wire in _TOPICS:
        return topic
    return group if wire in _GROUPS else _VALUES.get(wire, _TYPES[field.metadata["kind"]])
