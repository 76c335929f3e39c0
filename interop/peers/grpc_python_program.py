"""Apache's Python client of 5.x at one address, in an environment of its own: runs one scenario, prints what it got as JSON.

python grpc_python_program.py ADDRESS SCENARIO TOPIC GROUP
"""

from __future__ import annotations

import json
import sys
import threading
import time

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

COUNT = 10
SECONDS = 60


def main(address: str, scenario: str, topic: str, group: str) -> None:
    configuration = ClientConfiguration(address, Credentials())
    print(json.dumps(SCENARIOS[scenario](configuration, topic, group)))


def made(topic: str, body: str, **more: object) -> Message:
    message = Message()
    message.topic, message.body = topic, body.encode()
    for name, value in more.items():
        setattr(message, name, value)
    return message


def simple(configuration: ClientConfiguration, topic: str, group: str) -> object:
    """Sends, receives and acknowledges; each message with what it was sent with."""
    producer = Producer(configuration, (topic,))
    producer.startup()
    sent = []
    for number in range(COUNT):
        message = made(topic, f"body {number}", tag="a" if number % 2 else "b", keys=f"key-{number}")
        message.add_property("number", str(number))
        sent.append(producer.send(message).message_id)
    consumer = SimpleConsumer(configuration, group, {topic: FilterExpression()})
    consumer.startup()
    received: dict[str, list[object]] = {}
    end = time.monotonic() + SECONDS
    while len(received) < COUNT and time.monotonic() < end:
        for message in consumer.receive(32, 15) or []:
            received[message.message_id] = [
                message.body.decode(), message.tag, sorted(message.keys), message.properties, message.delivery_attempt
            ]  # fmt: skip
            consumer.ack(message)
    consumer.shutdown()
    producer.shutdown()
    return {"sent": sent, "received": received}


class Listener(MessageListener):
    """Notes what comes."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.complete = threading.Event()

    def consume(self, message: Message) -> ConsumeResult:
        self.bodies.append(message.body.decode())
        if len(self.bodies) >= COUNT:
            self.complete.set()
        return ConsumeResult.SUCCESS


def push(configuration: ClientConfiguration, topic: str, group: str) -> object:
    """A push consumer gets what is sent while it runs."""
    listener = Listener()
    consumer = PushConsumer(configuration, group, listener, {topic: FilterExpression()})
    consumer.startup()
    producer = Producer(configuration, (topic,))
    producer.startup()
    for number in range(COUNT):
        producer.send(made(topic, f"body {number}"))
    listener.complete.wait(SECONDS)
    producer.shutdown()
    consumer.shutdown()
    return sorted(listener.bodies)


class Commits(TransactionChecker):
    """Says of every transaction that it is to be committed."""

    def check(self, message: Message) -> TransactionResolution:
        return TransactionResolution.COMMIT


def transaction(configuration: ClientConfiguration, topic: str, group: str) -> object:
    """Commits one, rolls one back."""
    producer = Producer(configuration, (topic,), checker=Commits())
    producer.startup()
    for body, commits in (("committed", True), ("rolled back", False)):
        begun = producer.begin_transaction()
        producer.send(made(topic, body), begun)
        begun.commit() if commits else begun.rollback()
    producer.shutdown()
    return "done"


SCENARIOS = {"simple": simple, "push": push, "transaction": transaction}

if __name__ == "__main__":
    main(*sys.argv[1:])
