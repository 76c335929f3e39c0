"""The coordinator's documents, and what a hand's edit may have made of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.ordering.documents import (
    BrokerMember,
    DocumentFault,
    GroupWish,
    Overtaken,
    decode_group,
    decode_lists,
    decode_member,
    decode_topic,
    encode_group,
    encode_lists,
    encode_member,
    encode_topic,
    read_lists,
)
from twisted_mq.ordering.lists import Lists, OrderedTopic, StoreMark, Term

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def test_lists_as_they_are_written() -> None:
    lists = Lists(7, ("b",), (Term("a", 5), Term("b", 7)), led=(Term("a", 5), Term("b", 7)))
    data = b'{"epoch":7,"send":["b"],"consume":[["a",5],["b",7]],"led":[["a",5],["b",7]]}'
    assert encode_lists(lists) == data
    assert decode_lists("/topics/T/0", data) == lists


def test_lists_of_an_older_version_say_nothing_of_earlier_heads() -> None:
    data = b'{"epoch":7,"send":["b"],"consume":[["a",5],["b",7]]}'
    lists = decode_lists("/topics/T/0", data)
    assert lists == Lists(7, ("b",), (Term("a", 5), Term("b", 7)), led_from=7)
    written = b'{"epoch":7,"send":["b"],"consume":[["a",5],["b",7]],"led_from":7}'
    assert encode_lists(lists) == written
    assert decode_lists("/topics/T/0", written) == lists


def test_lists_that_a_store_has_overtaken_are_read_only_for_a_repair() -> None:
    terms = Term("b", 2), Term("a", 2)
    lists = Lists(3, (), terms, (StoreMark("c", 5, 7),), terms[:1], terms[::-1])
    data = b'{"epoch":3,"send":[],"consume":[["b",2],["a",2]],"forks":[["b",2]],"led":[["a",2],["b",2]],"stores":[["c",5,7]]}'
    assert encode_lists(lists) == data
    assert read_lists("/topics/T/0", data) == lists
    with pytest.raises(Overtaken) as caught:
        decode_lists("/topics/T/0", data)
    assert str(caught.value) == (
        "/topics/T/0: epoch: the coordinator has an older state: the store of c has messages of epoch 5, which is not in "
        "these lists, got 3"
    )
    assert caught.value.remedy == "mq order repair T shows and writes the lists that fit the stores"


@given(st.integers(1, 65535), st.lists(NAMES, min_size=1, unique=True), st.booleans())
def test_declarations_come_back(queues: int, groups: list[str], together: bool) -> None:
    topic = OrderedTopic("T", queues, tuple(groups), together)
    assert decode_topic("/topics/T", encode_topic(topic)) == topic


@given(NAMES, st.none() | NAMES, st.booleans())
def test_members_and_wishes_come_back(address: str, fault: str | None, flag: bool) -> None:
    member = BrokerMember(address, fault, flag)
    assert decode_member("/brokers/a/0", encode_member(member)) == member
    assert decode_group("/groups/a", encode_group(GroupWish(flag))) == GroupWish(flag)


def test_members_as_they_are_written() -> None:
    assert encode_member(BrokerMember("h:1")) == b'{"address":"h:1","fault":null,"complete":true,"asks_session":true}'


FAULTS = [
    (decode_lists, b"", "", "not JSON"),
    (decode_lists, b"\xff{}", "", "not JSON"),
    (decode_lists, b"[]", "", "not a JSON object"),
    (decode_lists, b'{"send":[],"consume":[]}', "epoch", "is missing"),
    (decode_lists, b'{"epoch":"7","send":[],"consume":[]}', "epoch", "a number"),
    (decode_lists, b'{"epoch":true,"send":[],"consume":[]}', "epoch", "a number"),
    (decode_lists, b'{"epoch":-1,"send":[],"consume":[]}', "epoch", "a number"),
    (decode_lists, b'{"epoch":9223372036854775808,"send":[],"consume":[]}', "epoch", "a number"),
    (decode_lists, b'{"epoch":0,"send":"a","consume":[]}', "send", "a list of broker names"),
    (decode_lists, b'{"epoch":0,"send":[1],"consume":[]}', "send", "a list of broker names"),
    (decode_lists, b'{"epoch":1,"send":[],"consume":[["a"]]}', "consume", "a list of"),
    (decode_lists, b'{"epoch":1,"send":[],"consume":[["a","1"]]}', "consume", "a list of"),
    (decode_lists, b'{"epoch":1,"send":[],"consume":[],"stores":[["a",1]]}', "stores", "a list of"),
    (decode_lists, b'{"epoch":1,"send":["a"],"consume":[["b",1]]}', "consume", "does not end with the send list's head"),
    (decode_lists, b'{"epoch":1,"send":[],"consume":[],"led":[["a",2]]}', "led", "has an epoch that is not one of"),
    (decode_lists, b'{"epoch":1,"send":[],"consume":[],"led_from":-1}', "led_from", "a number"),
    (decode_topic, b'{"queues":0,"groups":["a"],"together":false}', "queues", "1 to 65535"),
    (decode_topic, b'{"queues":1,"groups":[],"together":false}', "groups", "one or more"),
    (decode_topic, b'{"queues":1,"groups":["a","a"],"together":false}', "groups", "different broker names"),
    (decode_topic, b'{"queues":1,"groups":["a"],"together":1}', "together", "true or false"),
    (decode_group, b'{"retired":"no"}', "retired", "true or false"),
    (decode_member, b'{"address":"","fault":null,"complete":true}', "address", "host:port"),
    (decode_member, b'{"address":"h:1","fault":7,"complete":true}', "fault", "a text or null"),
]  # fmt: skip


@pytest.mark.parametrize(("decode", "data", "field", "reason"), FAULTS)
def test_fault_names_path_field_and_value(
    decode: Callable[[str, bytes], object], data: bytes, field: str, reason: str
) -> None:
    with pytest.raises(DocumentFault) as caught:
        decode("/somewhere", data)
    fault = caught.value
    assert (fault.path, fault.field) == ("/somewhere", field)
    assert reason in fault.reason
    assert fault.remedy == "correct the node by hand"
    assert str(fault).startswith(f"/somewhere: {field}: " if field else "/somewhere: ")


def test_highest_epoch_is_read() -> None:
    assert decode_lists("/topics/T/0", b'{"epoch":%d,"send":[],"consume":[]}' % (2**63 - 1)).epoch == 2**63 - 1


def test_fields_of_later_versions_are_passed_over() -> None:
    assert decode_group("/groups/a", b'{"retired":true,"why":"new disks"}') == GroupWish(True)
