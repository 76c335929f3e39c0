"""Apache's C++ client (the wheel rocketmq 0.4.4) against both brokers, in a process of its own."""

from __future__ import annotations

import pytest

from interop.peers.clients import Clients, bodies
from interop.peers.waiting import stored

pytestmark = pytest.mark.peer


def test_cpp_client_sends_and_consumes_with_tags(cpp_clients: Clients, topic: str, group: str) -> None:
    producer = cpp_clients.producer()
    results = [
        producer.send(topic, f"cpp {number}", tags="TagA" if number % 2 else "TagB", keys=f"key{number}")
        for number in range(8)
    ]
    assert {result["status"] for result in results} == {"OK"}
    consumer = cpp_clients.push_consumer(group, topic, "TagA")
    messages = consumer.wait_bodies({f"cpp {number}" for number in range(1, 8, 2)})
    assert sorted((message["body"], message["tags"], message["keys"]) for message in messages) == [
        (f"cpp {number}", "TagA", f"key{number}") for number in range(1, 8, 2)
    ]


def test_cpp_client_sends_one_way_and_consumes_in_order(cpp_clients: Clients, topic: str, group: str) -> None:
    producer = cpp_clients.producer()
    one_way = [f"one-way {number}" for number in range(5)]
    ordered = [f"ordered {step}" for step in range(5)]
    producer.command("send_one_way", messages=[{"topic": topic, "body": text} for text in one_way])
    for text in ordered:
        assert producer.command("send_ordered", topic=topic, body=text, order_key=2)["status"] == "OK"
    consumer = cpp_clients.push_consumer(group, topic, orderly=True)
    received = bodies(consumer.wait_bodies({*one_way, *ordered}))
    assert [text for text in received if text in ordered] == ordered


def test_cpp_client_batch_is_stored_as_one_message(
    cpp_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    """The client sends a batch with the code of a single message, so its body is stored unchanged."""
    texts = [f"batch {number}" for number in range(5)]
    result = cpp_clients.producer().command("send_batch", messages=[{"topic": topic, "body": text} for text in texts])
    assert (result["status"], result["queue_offset"]) == ("OK", 0)
    (message,) = stored(java_clients.pull_consumer(group), topic, 1)
    assert [text for text in texts if text in message["body"]] == texts


def test_messages_pass_between_the_cpp_and_the_java_client(
    cpp_clients: Clients, java_clients: Clients, topic: str, group: str
) -> None:
    cpp_consumer = cpp_clients.push_consumer(f"{group}_cpp", topic)
    java_consumer = java_clients.push_consumer(f"{group}_java", topic)
    long_text = "compressed by the sender " * 400
    cpp_clients.producer().send(topic, "from C++ " + long_text, keys="cpp", properties={"colour": "green"})
    java_clients.producer().send(topic, "from Java " + long_text, keys="java")
    expected = {"from C++ " + long_text, "from Java " + long_text}
    assert set(bodies(cpp_consumer.wait_bodies(expected))) == expected
    received = {message["keys"]: message for message in java_consumer.wait_bodies(expected)}
    assert received["cpp"]["properties"]["colour"] == "green"
    assert received["java"]["body"] == "from Java " + long_text
