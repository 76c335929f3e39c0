"""Apache's gRPC client for Python behind JSON lines; one process serves all scenarios of a test module.

python python_program.py ADDRESS plain; the lines are those of scenarios.py. Runs in the client's own environment.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
from rocketmq.grpc_protocol import FilterType

Record = dict[str, Any]

STARTED: dict[str, Any] = {}
RECEIVED: dict[str, Message] = {}
KEYS = itertools.count(1)
WRITING = threading.Lock()
DECISIONS = {"commit": TransactionResolution.COMMIT, "rollback": TransactionResolution.ROLLBACK}
CONFIGURATION: list[ClientConfiguration] = []


def write(value: Record) -> None:
    with WRITING:
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


def record(view: Message) -> Record:
    key = str(next(KEYS))
    RECEIVED[key] = view
    return {
        "message": key,
        "message_id": view.message_id,
        "topic": view.topic,
        "body": view.body.decode(),
        "tag": view.tag,
        "keys": sorted(view.keys),
        "message_group": view.message_group,
        "priority": view.priority,
        "deliver_at_ms": None if view.delivery_timestamp is None else view.delivery_timestamp * 1000,
        "properties": dict(view.properties),
        "born_host": view.born_host,
        "born_ms": view.born_timestamp,
        "attempt": view.delivery_attempt,
        "at_ms": int(time.time() * 1000),
    }


def message(request: Record) -> Message:
    made = Message()
    made.topic, made.body = request["topic"], request["body"].encode()
    for name in ("tag", "message_group"):
        if name in request:
            setattr(made, name, request[name])
    if "priority" in request:
        made.priority = request["priority"]
    if "deliver_at_ms" in request:
        made.delivery_timestamp = request["deliver_at_ms"] // 1000
    for key in request.get("keys", ()):
        made.keys = key
    for name, value in request.get("properties", {}).items():
        made.add_property(name, value)
    return made


class Checker(TransactionChecker):
    """Decides as the message's property "check" says, and tells of it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, message: Message) -> TransactionResolution:
        write({"event": "check", "consumer": self.name, "message": record(message)})
        return DECISIONS.get(message.properties.get("check"), TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED)


class Listener(MessageListener):
    """Refuses a message as often as its property "failures" says, and tells of each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: Counter[str] = Counter()

    def consume(self, message: Message) -> ConsumeResult:
        self.seen[message.message_id] += 1
        fails = self.seen[message.message_id] <= int(message.properties.get("failures", "0"))
        write({"event": "refused" if fails else "message", "consumer": self.name, "message": record(message)})
        return ConsumeResult.FAILURE if fails else ConsumeResult.SUCCESS


def subscription(request: Record) -> dict[str, FilterExpression]:
    if "sql" in request:
        return {request["topic"]: FilterExpression(request["sql"], FilterType.SQL)}
    return {request["topic"]: FilterExpression(request["tags"])}


def keep(name: str, client: Any) -> str:
    client.startup()
    STARTED[name] = client
    return name


def producer(request: Record) -> str:
    name = request["name"]
    return keep(name, Producer(CONFIGURATION[0], (request["topic"],), checker=Checker(name)))


def simple_consumer(request: Record) -> str:
    made = SimpleConsumer(
        CONFIGURATION[0], request["group"], subscription(request), await_duration=request["await_ms"] // 1000
    )
    return keep(request["name"], made)


def push_consumer(request: Record) -> str:
    name = request["name"]
    return keep(name, PushConsumer(CONFIGURATION[0], request["group"], Listener(name), subscription(request)))


def receipt(sent: Any) -> Record:
    return {"message_id": sent.message_id, "recall_handle": sent.recall_handle or None}


def send(request: Record) -> Record:
    return receipt(STARTED[request["producer"]].send(message(request)))


def send_in_transaction(request: Record) -> Record:
    client = STARTED[request["producer"]]
    begun = client.begin_transaction()
    sent = client.send(message(request), begun)
    local = request["properties"].get("local")
    if local:
        begun.commit() if local == "commit" else begun.rollback()
    return receipt(sent)


def recall(request: Record) -> str:
    return STARTED[request["producer"]].recall_message(request["topic"], request["handle"])


def receive(request: Record) -> list[Record]:
    consumer = STARTED[request["consumer"]]
    return [record(one) for one in consumer.receive(request["most"], request["invisible_ms"] // 1000) or ()]


def ack(request: Record) -> None:
    STARTED[request["consumer"]].ack(RECEIVED.pop(request["message"]))


def change_invisible(request: Record) -> None:
    consumer, view = STARTED[request["consumer"]], RECEIVED[request["message"]]
    consumer.change_invisible_duration(view, request["invisible_ms"] // 1000)


def stop(request: Record) -> bool:
    client = STARTED.pop(request["name"], None)
    if client is not None:
        client.shutdown()
    return client is not None


COMMANDS = {
    made.__name__: made
    for made in (
        producer, simple_consumer, push_consumer, send, send_in_transaction, recall, receive, ack, change_invisible, stop,
    )
}  # fmt: skip


def answer(request: Record) -> None:
    try:
        write({"id": request["id"], "result": COMMANDS[request["do"]](request)})
    except Exception as failure:
        code = getattr(failure, "code", None)  # a method of what grpc raises
        code = code if isinstance(code, int) else -1
        error = {"type": type(failure).__name__, "code": code, "message": str(failure)}
        write({"id": request["id"], "error": error})


def main(address: str) -> None:
    CONFIGURATION.append(ClientConfiguration(address, Credentials()))
    with ThreadPoolExecutor(64) as workers:
        for line in sys.stdin:
            workers.submit(answer, json.loads(line))
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
