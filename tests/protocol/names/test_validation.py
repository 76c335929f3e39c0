import pytest

from twisted_mq.protocol.names.system_topics import is_system_topic
from twisted_mq.protocol.names.validation import group_fault, topic_fault

ILLEGAL = "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


@pytest.mark.parametrize(
    ("topic", "fault"),
    [
        ("T", None),
        ("%RETRY%group-1_a|b", None),
        ("t" * 127, None),
        ("t" * 128, "The specified topic is longer than topic max length."),
        ("", "The specified topic is blank."),
        (None, "The specified topic is blank."),
        ("  ", "The specified topic is blank."),
        ("../x", ILLEGAL),
        ("a b", ILLEGAL),
        ("a/b", ILLEGAL),
        ("a.b", ILLEGAL),
        ("a\n", ILLEGAL),
        ("a\0", ILLEGAL),
        ("tópico", ILLEGAL),
    ],
)
def test_topic_names(topic: str | None, fault: str | None) -> None:
    assert topic_fault(topic) == fault


def test_group_names() -> None:
    assert group_fault("CG_1") is None
    assert group_fault("a b") == "the specified group contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    assert group_fault("g" * 256) == "the specified group is longer than group max length: 255"
    assert group_fault("") == "the specified group is blank"


def test_system_topics() -> None:
    assert [is_system_topic(name) for name in ("TBW102", "rmq_sys_wheel_timer", "T")] == [True, True, False]
