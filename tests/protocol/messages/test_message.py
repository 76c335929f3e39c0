from __future__ import annotations

from twisted_mq.protocol.messages.message import Message, MessageExt


def test_a_message_is_made_with_tags_and_keys() -> None:
    message = Message.make("Orders", b"x", tags="paid", keys=["o1", "o2"], properties={"shop": "7"})
    assert message == Message("Orders", b"x", 0, {"shop": "7", "TAGS": "paid", "KEYS": "o1 o2"})
    assert (message.tags, message.keys, message.unique_key) == ("paid", ["o1", "o2"], None)


def test_one_key_may_be_given_as_text() -> None:
    assert Message.make("Orders", b"", keys="o1").properties == {"KEYS": "o1"}


def test_the_caller_s_properties_are_copied() -> None:
    properties = {"shop": "7"}
    Message.make("Orders", b"", tags="paid", properties=properties)
    assert properties == {"shop": "7"}


def test_absent_properties_have_apache_s_defaults() -> None:
    message = Message("Orders", b"")
    assert (message.tags, message.keys, message.delay_time_level, message.wait_store_message_ok) == (None, [], 0, True)


def test_delay_level_and_waiting_are_properties() -> None:
    message = Message("Orders", b"", properties={"WAIT": "false"})
    message.delay_time_level = 3
    assert message.properties == {"WAIT": "false", "DELAY": "3"}
    assert (message.delay_time_level, message.wait_store_message_ok) == (3, False)


def test_a_stored_message_shows_its_properties() -> None:
    message = MessageExt(
        "Orders", 0, 1, 2, 3, 4, 0x4, 0, 5, "127.0.0.1:1", 6, "127.0.0.1:2", 0, 0,
        {"TAGS": "paid", "KEYS": "a  b", "UNIQ_KEY": "C0"}, b"x", "7F",
    )  # fmt: skip
    assert (message.tags, message.keys, message.unique_key, message.transaction_type) == ("paid", ["a", "b"], "C0", 4)
