"""The rules for messages that the contract tests do not reach."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tests.storage.conftest import START_MS, config, message
from tests.support.batches import batched
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.storage.appending.admission import Admission, based, inner_number
from twisted_mq.storage.interfaces import PutStatus


@pytest.fixture
def admission(tmp_path: Path) -> Admission:
    return Admission(config(tmp_path, max_message_size=1000, message_delay_level="1s 1m"))


def test_batch_as_a_whole_has_the_limit_of_one_message(admission: Admission) -> None:
    assert admission.verdict_on_batch(batched([message(body=bytes(500))] * 2)) is None
    assert admission.verdict_on_batch(batched([message(body=bytes(501))] * 2)) is PutStatus.MESSAGE_ILLEGAL


def test_bodies_of_a_batch_count_whether_alike_or_not(admission: Admission) -> None:
    long = message(body=bytes(1001))
    assert admission.verdict_on_batch(batched([message(body=b""), long])) is PutStatus.MESSAGE_ILLEGAL
    for body, verdict in ((bytes(1000), None), (bytes(1001), PutStatus.MESSAGE_ILLEGAL)):
        alike = attrs.evolve(batched([message(body=body)]), alike=True)
        assert admission.verdict_on_batch(alike) is verdict


def test_properties_of_a_batch_are_judged_with_what_is_added_to_each(admission: Admission) -> None:
    fits = batched([message(properties=bytes(32767))] * 2)
    room = 32767 - len(fits.suffix)
    for size, verdict in ((room, None), (room + 1, PutStatus.PROPERTIES_SIZE_EXCEEDED)):
        assert admission.verdict_on_batch(batched([message(properties=bytes(size))] * 2)) is verdict
        assert admission.verdict_on_batch(batched([message(), message(properties=bytes(size))])) is verdict


@pytest.mark.parametrize(
    ("text", "number"), [(None, 1), ("1", 1), ("32767", 32767), ("32768", None), ("0", None), ("-1", None), ("x", None)]
)
def test_an_inner_batch_counts_for_as_many_as_a_queue_entry_can_say(text: str | None, number: int | None) -> None:
    known = {} if text is None else {"INNER_NUM": text}
    assert inner_number(message(property_map=known, sys_flag=int(MessageSysFlag.INNER_BATCH_FLAG))) == number


@pytest.mark.parametrize(
    ("properties", "begin"),
    [
        (b"", b""),
        (b"A\x01b", b"A\x01b\x02"),
        (b"A\x01b\x02", b"A\x01b\x02"),
        (b"INNER_BASE\x013\x02A\x01b", b"A\x01b\x02"),
    ],
    ids=["none", "no separator", "separator", "another base"],
)
def test_an_inner_batch_says_its_first_queue_offset(properties: bytes, begin: bytes) -> None:
    inner = message(properties=properties, sys_flag=int(MessageSysFlag.INNER_BATCH_FLAG))
    assert based(inner, 7) == begin + b"INNER_BASE\x017\x02"


def test_properties_are_judged_before_the_body(admission: Admission) -> None:
    wrong = message(body=bytes(1001), properties=bytes(32768))
    assert admission.verdict([message(), wrong]) is PutStatus.PROPERTIES_SIZE_EXCEEDED


@pytest.mark.parametrize(
    ("properties", "due"),
    [
        ({"DELAY": "1"}, START_MS + 1000),
        ({"DELAY": "2"}, START_MS + 60_000),
        ({"DELAY": "9"}, START_MS + 60_000),
        ({"DELAY": "0"}, 7),
        ({"DELAY": "x"}, 7),
        ({}, 7),
    ],
    ids=str,
)
def test_due_time(admission: Admission, properties: dict[str, str], due: int) -> None:
    assert admission.due_time(message(property_map=properties, tags_code=7), START_MS) == due


def test_only_topics_of_retries_may_be_longer_than_127_characters(admission: Admission) -> None:
    longest = "t" * 127
    assert [admission.may_have_queue(topic, 0) for topic in (longest, longest + "t", "%RETRY%" + longest)] == [
        True,
        False,
        True,
    ]
