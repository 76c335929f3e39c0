"""Reads and writes the coordinator's nodes as JSON documents. A malformed document is refused: manual edits are not guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs

from twisted_mq.ordering.lists import Lists, OrderedTopic, StoreMark, Term
from twisted_mq.ordering.rules import fault_of

MOST_QUEUES = 65535


class DocumentFault(Exception):
    """Raised for a malformed document: `path`, `field` (empty if it is not an object at all), `value` and the reason."""

    def __init__(self, path: str, field: str, value: object, reason: str) -> None:
        place = f"{path}: {field}" if field else path
        super().__init__(f"{place}: {reason}, got {json.dumps(value, ensure_ascii=False, default=repr)}")
        self.path = path
        self.field = field
        self.value = value
        self.reason = reason

    @property
    def remedy(self) -> str:
        """Return what an operator can do about the fault."""
        return "correct the node by hand"


class Overtaken(DocumentFault):
    """Raised for lists that are older than what a group's store holds: the coordinator was restored from an older state."""

    def __init__(self, path: str, lists: Lists, mark: StoreMark) -> None:
        reason = (
            f"the coordinator has an older state: the store of {mark.group} has messages of epoch {mark.epoch}, which is not "
            "in these lists"
        )
        super().__init__(path, "epoch", lists.epoch, reason)
        self.lists = lists

    @property
    def remedy(self) -> str:
        return f"mq order repair {self.path.split('/')[-2]} shows and writes the lists that fit the stores"


@attrs.frozen
class BrokerMember:
    """A living broker of a group. `fault` says why the group must not take sends, None if this broker allows it.

    `complete` is False for a broker that (re)started and may lack what its partner has. `asks_session` is True for one
    that, as a master, acknowledges ordered messages only while its slave confirms its session; older brokers do not know
    it.
    """

    address: str
    fault: str | None = None
    complete: bool = True
    asks_session: bool = True


@attrs.frozen
class UnreachedHead:
    """The report of a producer that it cannot reach the group that takes sends in an epoch."""

    group: str
    epoch: int
    client: str


@attrs.frozen
class GroupWish:
    """The wishes of operators for a group; a group without the node is not retired."""

    retired: bool = False


# writing


def encode_topic(topic: OrderedTopic) -> bytes:
    """Encode the declaration at `topic_path`."""
    return _encode({"queues": topic.queues, "groups": topic.groups, "together": topic.together})


def encode_lists(lists: Lists) -> bytes:
    """Encode the lists at `unit_path`."""
    consume = [[term.group, term.epoch] for term in lists.consume]
    document = {"epoch": lists.epoch, "send": lists.send, "consume": consume}
    if lists.forks:
        document["forks"] = [[term.group, term.epoch] for term in lists.forks]
    if lists.led:
        document["led"] = [[term.group, term.epoch] for term in lists.led]
    if lists.led_from:
        document["led_from"] = lists.led_from
    if lists.stores:
        document["stores"] = [[mark.group, mark.epoch, mark.leader] for mark in lists.stores]
    return _encode(document)


def encode_group(wish: GroupWish) -> bytes:
    """Encode the wish at `group_path`."""
    return _encode({"retired": wish.retired})


def encode_member(member: BrokerMember) -> bytes:
    """Encode the broker at `member_path`."""
    return _encode(
        {
            "address": member.address,
            "fault": member.fault,
            "complete": member.complete,
            "asks_session": member.asks_session,
        }
    )


def encode_unreached(report: UnreachedHead) -> bytes:
    """Encode the report at `unreached_path`."""
    return _encode(attrs.asdict(report))


def _encode(document: dict[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


# reading


def decode_topic(path: str, data: bytes) -> OrderedTopic:
    """Decode a declaration. Raises DocumentFault."""
    document = _Document(path, data)
    queues = document.take("queues", _is_number(1, MOST_QUEUES), f"1 to {MOST_QUEUES} queues")
    groups = document.take("groups", _is_names, "a list of one or more different broker names")
    together = document.take("together", _is_bool, "true or false")
    return OrderedTopic(path.rpartition("/")[2], queues, tuple(groups), together)


def decode_lists(path: str, data: bytes) -> Lists:
    """Decode lists. Raises DocumentFault, also for lists that no event leads to, and Overtaken."""
    lists = read_lists(path, data)
    mark = lists.overtaken_by
    if mark is not None:
        raise Overtaken(path, lists, mark)
    return lists


def read_lists(path: str, data: bytes) -> Lists:
    """Decode lists, including overtaken ones. Raises DocumentFault for any other fault."""
    document = _Document(path, data)
    epoch = document.take("epoch", _is_number(0), "a number of at least 0")
    send = document.take("send", _is_texts, "a list of broker names")
    consume = document.take("consume", _is_terms, "a list of [broker name, epoch]")
    stores = document.take("stores", _is_marks, "a list of [broker name, epoch, leader]", default=[])
    forks = document.take("forks", _is_terms, "a list of [broker name, epoch]", default=[])
    led = document.take("led", _is_terms, "a list of [broker name, epoch]", default=[])
    led_from = document.take("led_from", _is_number(0), "a number of at least 0", default=0 if led else epoch)
    marks = tuple(StoreMark(*mark) for mark in stores)
    terms = tuple(Term(*term) for term in consume)
    leaders = tuple(Term(*term) for term in led)
    lists = Lists(epoch, tuple(send), terms, marks, tuple(Term(*term) for term in forks), leaders, led_from)
    fault = fault_of(lists)
    if fault is not None:
        raise DocumentFault(path, fault[0], document.values[fault[0]], fault[1])
    return lists


def decode_group(path: str, data: bytes) -> GroupWish:
    """Decode a wish. Raises DocumentFault."""
    return GroupWish(_Document(path, data).take("retired", _is_bool, "true or false"))


def decode_member(path: str, data: bytes) -> BrokerMember:
    """Decode a broker. Raises DocumentFault."""
    document = _Document(path, data)
    address = document.take("address", _is_text, "host:port")
    fault = document.take("fault", lambda value: value is None or _is_text(value), "a text or null")
    complete = document.take("complete", _is_bool, "true or false")
    return BrokerMember(
        address, fault, complete, document.take("asks_session", _is_bool, "true or false", default=False)
    )


def decode_unreached(path: str, data: bytes) -> UnreachedHead:
    """Decode a report. Raises DocumentFault."""
    document = _Document(path, data)
    group = document.take("group", _is_text, "a broker name")
    epoch = document.take("epoch", _is_number(1), "a number of at least 1")
    return UnreachedHead(group, epoch, document.take("client", _is_text, "a client id"))


class _Document:
    """A document being read. `values` are its fields; unknown ones are skipped."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        try:
            self.values = json.loads(data)
        except ValueError as error:
            raise DocumentFault(path, "", data.decode(errors="replace"), f"not JSON ({error})") from None
        if not isinstance(self.values, dict):
            raise DocumentFault(path, "", self.values, "not a JSON object")

    def take(self, field: str, fits: Callable[[Any], bool], wanted: str, default: object = None) -> Any:
        """Return a field's value. Raises DocumentFault if it does not fit, or is missing without a default."""
        if field not in self.values and default is None:
            raise DocumentFault(self.path, field, None, f"is missing, it must be {wanted}")
        value = self.values.get(field, default)
        if not fits(value):
            raise DocumentFault(self.path, field, value, f"must be {wanted}")
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


def _are_rows(numbers: int) -> Callable[[Any], bool]:
    """Return a check for lists of a broker name and that many numbers."""
    whole = _is_number(0)
    return lambda value: (
        isinstance(value, list)
        and all(
            isinstance(row, list) and len(row) == 1 + numbers and _is_text(row[0]) and all(map(whole, row[1:]))
            for row in value
        )
    )


_is_terms, _is_marks = _are_rows(1), _are_rows(2)
