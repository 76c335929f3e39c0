"""A broker starts and serves its messages whatever is in its table files: half of them, noise, JSON of another shape."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from twisted_mq.blocking import ConsumeFromWhere, ConsumerOptions, Message, Producer, PushConsumer
from twisted_mq.testing import EmbeddedCluster, EmbeddedServer

BODIES = {b"%d" % number for number in range(20)}
TABLES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")
"""Tables that every broker writes."""
NEVER_MS = 10**9
OPTIONS = {"timer_wheel_enable": True, "enable_property_filter": True, "recall_message_enable": True}


def _of_all_types(value: object) -> object:
    """The same members, each with a value of another type."""
    if isinstance(value, dict):
        return {name: _of_all_types(one) for name, one in value.items()}
    return [1] if isinstance(value, (str, int, float, bool)) or value is None else "x"


def _other_types(data: bytes) -> bytes:
    try:
        return json.dumps(_of_all_types(json.loads(data))).encode()
    except ValueError:
        return b"\xff" * len(data)


def _other_numbers(data: bytes) -> bytes:
    """Every digit another one: numbers are valid, and mean nothing."""
    return data.translate(bytes.maketrans(b"0123456789", b"9876543210"))


OTHER_NUMBERS = "other numbers"
"""Damage that changes numbers: a topic may get another permission, so that no client may read it."""
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "noise": lambda data: Random(len(data)).randbytes(max(100, len(data))),
    "zeros": lambda data: bytes(max(100, len(data))),
    "null": lambda data: b"null",
    "a list": lambda data: b"[]",
    "nothing in it": lambda data: b"{}",
    "deep": lambda data: b'{"a":' * 50_000,
    "other types": _other_types,
    OTHER_NUMBERS: _other_numbers,
}


def written(folder: Path) -> list[Path]:
    """All files of tables that a broker left: its `config` folder, and checkpoints."""
    found = [one for one in (folder / "config").rglob("*") if one.is_file()]
    found += [one for one in folder.iterdir() if one.is_file() and one.name not in ("lock", "abort")]
    return sorted(found)


class StoredServer(EmbeddedServer):
    """Servers whose store is a folder that stays."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._cluster = EmbeddedCluster(
            self._thread.reactor, str(folder),
            broker_options={**OPTIONS, "mapped_file_size_commit_log": 1 << 20, "clean_resource_interval": NEVER_MS},
        )  # fmt: skip


def fill(server: EmbeddedServer) -> None:
    """Messages, a group with offsets and an expression, a message that waits."""
    with Producer(server.namesrv, group="producers") as producer:
        for body in sorted(BODIES):
            producer.send(Message("Kept", body, properties={"a": "1"}))
        producer.send(Message("Kept", b"later", delay_time_level=18))
        producer.send(Message("Kept", b"much later", delay_time_seconds=3600))
    with PushConsumer(server.namesrv, group="readers", topics={"Kept": "*"}) as consumer:
        for message in consumer.messages(timeout=1):
            message.ack()


def readable(server: EmbeddedServer, group: str) -> set[bytes]:
    """Return the messages that a new group gets from the topic."""
    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
    found = set()
    with PushConsumer(server.namesrv, group=group, topics={"Kept": "*"}, options=options) as consumer:
        for message in consumer.messages(timeout=30):
            found.add(message.body)
            message.ack()
            if found >= BODIES:
                break
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    with StoredServer(folder) as server:
        fill(server)
    return folder


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_broker_starts_with_damaged_tables(store: Path, tmp_path: Path, damage: str) -> None:
    """All tables, and what was kept of them (.bak), are damaged alike."""
    folder = tmp_path / "store"
    shutil.copytree(store, folder)
    tables = written(folder)
    assert {one.name for one in tables} >= set(TABLES)
    for table in tables:
        table.write_bytes(DAMAGES[damage](table.read_bytes()))
    with StoredServer(folder) as server:
        with Producer(server.namesrv, group="producers") as producer:
            producer.send(Message("Kept", b"0"))
        assert {one.body for one in server.messages("Kept")} >= BODIES
        assert damage == OTHER_NUMBERS or readable(server, "new") >= BODIES
