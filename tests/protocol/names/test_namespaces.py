"""Names with and without their namespace."""

from __future__ import annotations

import pytest

from twisted_mq.protocol.names.namespaces import with_namespace, without_namespace

PAIRS = [
    ("T", "space%T"),
    ("%RETRY%G", "%RETRY%space%G"),
    ("%DLQ%G", "%DLQ%space%G"),
    ("other%T", "space%other%T"),
]


@pytest.mark.parametrize(("name", "full"), PAIRS)
def test_a_namespace_is_put_before_the_name_and_taken_off(name: str, full: str) -> None:
    assert with_namespace("space", name) == full
    assert with_namespace("space", full) == full
    assert without_namespace("space", full) == name
    assert without_namespace("space", name) == name


@pytest.mark.parametrize("name", ["TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_anything", "CID_RMQ_SYS_TRANS", ""])
def test_names_of_the_system_stay(name: str) -> None:
    assert with_namespace("space", name) == name


def test_without_a_namespace_names_are_as_they_are() -> None:
    assert (with_namespace("", "T"), without_namespace("", "space%T")) == ("T", "space%T")
