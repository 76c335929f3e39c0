"""The message a user makes."""

from __future__ import annotations

from twisted_mq.client.core.message import Message


def test_message_takes_tags_keys_and_properties() -> None:
    made = Message(topic="T", body=b"x", tags="A", keys=["k", "l"], flag=7, delay_time_level=3, properties={"p": "v"})
    assert made.properties == {"p": "v", "TAGS": "A", "KEYS": "k l", "DELAY": "3"}
    assert (made.topic, made.body, made.flag, made.tags, made.keys) == ("T", b"x", 7, "A", ["k", "l"])
    assert Message("T", b"x", keys="one").keys == ["one"]
