"""The coordinator's nodes as JSON documents. What makes no sense is refused: nobody guesses what a hand's edit meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs

from twisted_mq.ordering.lists import Lists, OrderedTopic, Term
from twisted_mq.ordering.rules import fault_of

MOST_QUEUES = 65535


class DocumentFault(Exception):
    """A node's document that is none: `path`, `field` (empty where it is no object at all), `value` and the reason."""

    def __init__(self, path: str, field: str, value: object, reason: str) -> None:
        place = f"{path}: {field}" if field else path
        super().__init__(f"{place}: {reason}, got {json.dumps(value, ensure_ascii=False, default=repr)}")
        self.path = path
        self.field = field
        self.value = value
        self.reason = reason


@attrs.frozen
class Member:
    """A living broker of a group. `fault` says why the group must not take sends, None where it may for this broker.

    `complete` is False for one that (re)started and may miss what its partner has.
    """

    address: str
    fault: str | None = None
    complete: bool = True


@attrs.frozen
class GroupWish:
    """What operators want of a group; a group without the node is as one that is not retired."""

    retired: bool = False


# writing


def encode_topic(topic: OrderedTopic) -> bytes:
    """The declaration at `topic_path`."""
    return _encode({"queues": topic.queues, "groups": topic.groups, "together": topic.together})


def encode_lists(lists: Lists) -> bytes:
    """The lists at `unit_path`."""
    consume = [[term.group, term.epoch] for term in lists.consume]
    return _encode({"epoch": lists.epoch, "send": lists.send, "consume": consume})


def encode_group(wish: GroupWish) -> bytes:
    """The wish at `group_path`."""
    return _encode({"retired": wish.retired})


def encode_member(member: Member) -> bytes:
    """The broker at `member_path`."""
    return _encode({"address": member.address, "fault": member.fault, "complete": member.complete})


def _encode(document: dict[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


# reading


def decode_topic(path: str, data: bytes) -> OrderedTopic:
    """Raises DocumentFault."""
    document = _Document(path, data)
    queues = document.take("queues", _is_number(1, MOST_QUEUES), f"1 to {MOST_QUEUES} queues")
    groups = document.take("groups", _is_names, "a list of broker names, at least one, none twice")
    together = document.take("together", _is_bool, "true or false")
    return OrderedTopic(path.rpartition("/")[2], queues, tuple(groups), together)


def decode_lists(path: str, data: bytes) -> Lists:
    """Raises DocumentFault, also for lists that no event leads to."""
    document = _Document(path, data)
    epoch = document.take("epoch", _is_number(0), "a number from 0 on")
    send = document.take("send", _is_texts, "a list of broker names")
    consume = document.take("consume", _is_terms, "a list of [broker name, epoch]")
    lists = Lists(epoch, tuple(send), tuple(Term(*term) for term in consume))
    fault = fault_of(lists)
    if fault is not None:
        raise DocumentFault(path, fault[0], document.values[fault[0]], fault[1])
    return lists


def decode_group(path: str, data: bytes) -> GroupWish:
    """Raises DocumentFault."""
    return GroupWish(_Document(path, data).take("retired", _is_bool, "true or false"))


def decode_member(path: str, data: bytes) -> Member:
    """Raises DocumentFault."""
    document = _Document(path, data)
    address = document.take("address", _is_text, "host:port")
    fault = document.take("fault", lambda value: value is None or _is_text(value), "a text or null")
    return Member(address, fault, document.take("complete", _is_bool, "true or false"))


class _Document:
    """`values` are its fields; those that nobody asks for are passed over."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        try:
            self.values = json.loads(data)
        except ValueError as error:
            raise DocumentFault(path, "", data.decode(errors="replace"), f"no JSON ({error})") from None
        if not isinstance(self.values, dict):
            raise DocumentFault(path, "", self.values, "no JSON object")

    def take(self, field: str, fits: Callable[[Any], bool], wanted: str) -> Any:
        """A field's value. Raises DocumentFault where it is missing or does not fit."""
        if field not in self.values:
            raise DocumentFault(self.path, field, None, f"is missing, {wanted} is needed")
        value = self.values[field]
        if not fits(value):
            raise DocumentFault(self.path, field, value, f"{wanted} is needed")
        return value


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(low: int, high: int = 2**63 - 1) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_names(value: Any) -> bool:
    return _is_texts(value) and len(value) == len(set(value)) > 0


def _is_terms(value: Any) -> bool:
    whole = _is_number(0)
    return isinstance(value, list) and all(
        isinstance(term, list) and len(term) == 2 and _is_text(term[0]) and whole(term[1]) for term in value
    )
