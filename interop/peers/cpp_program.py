"""Apache's C++ client (the wheel `rocketmq`) behind the JSON lines of line_peer.py. Run as a process of its own."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import rocketmq.client as cpp

Record = dict[str, Any]
SEND_MS = 15_000
"""Timeout of a send; a busy machine may need more than the three seconds of the default."""
_output = threading.Lock()
_started: dict[str, Any] = {}


def write(record: Record) -> None:
    with _output:
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def start_producer(arguments: Record) -> str:
    producer = cpp.Producer(arguments["group"], timeout=SEND_MS)
    producer.set_namesrv_addr(arguments["name_server"])
    producer.start()
    _started[arguments["name"]] = producer
    return arguments["name"]


def start_push_consumer(arguments: Record) -> str:
    name = arguments["name"]
    consumer = cpp.PushConsumer(arguments["group"], orderly=arguments.get("orderly", False))
    consumer.set_namesrv_addr(arguments["name_server"])
    consumer.set_instance_name(name)
    consumer.set_thread_count(1 if arguments.get("orderly") else 4)
    consumer.subscribe(arguments["topic"], lambda message: report(name, message), arguments["tags"])
    consumer.start()
    _started[name] = consumer
    return name


def report(name: str, message: Any) -> None:
    write({"event": "message", "consumer": name, "message": describe(message)})


def describe(message: Any) -> Record:
    return {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "msg_id": message.id,
        "tags": text(message.tags),
        "keys": text(message.keys),
        "body": text(message.body),
        "reconsume_times": message.reconsume_times,
        "store_size": message.store_size,
        "born_timestamp": message.born_timestamp,
        "store_timestamp": message.store_timestamp,
    }


def made(fields: Record) -> Any:
    message = cpp.Message(fields["topic"])
    message.set_body(fields["body"])
    for name in ("tags", "keys"):
        if name in fields:
            getattr(message, f"set_{name}")(fields[name])
    for key, value in fields.get("properties", {}).items():
        message.set_property(key, value)
    return message


def sent(result: Any) -> Record:
    return {"status": result.status.name, "msg_ids": [result.msg_id], "queue_offset": result.offset}


def send(arguments: Record) -> Record:
    return sent(_started[arguments["producer"]].send_sync(made(arguments)))


def send_all(arguments: Record) -> list[Record]:
    return [sent(_started[arguments["producer"]].send_sync(made(fields))) for fields in arguments["messages"]]


def send_ordered(arguments: Record) -> Record:
    return sent(_started[arguments["producer"]].send_orderly(made(arguments), arguments["order_key"]))


def send_one_way(arguments: Record) -> None:
    for fields in arguments["messages"]:
        _started[arguments["producer"]].send_oneway(made(fields))


def send_batch(arguments: Record) -> Record:
    return sent(_started[arguments["producer"]].send_batch([made(fields) for fields in arguments["messages"]]))


def stop(arguments: Record) -> bool:
    client = _started.pop(arguments["name"], None)
    if client is not None:
        client.shutdown()
    return client is not None


COMMANDS: dict[str, Callable[[Record], Any]] = {
    "producer": start_producer,
    "push_consumer": start_push_consumer,
    "send": send,
    "send_all": send_all,
    "send_ordered": send_ordered,
    "send_one_way": send_one_way,
    "send_batch": send_batch,
    "stop": stop,
}


def answer(request: Record) -> Record:
    try:
        return {"id": request["id"], "result": COMMANDS[request["do"]](request)}
    except Exception as failure:
        error = {"type": type(failure).__name__, "code": -1, "message": str(failure)}
        return {"id": request["id"], "error": error}


def main() -> None:
    for line in sys.stdin:
        write(answer(json.loads(line)))


if __name__ == "__main__":
    main()
