"""`mq replay` against a broker and a store at rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from twisted_mq.blocking import Message, Producer
from twisted_mq.testing import EmbeddedServer

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        with Producer(server.namesrv, group="shop") as producer:
            for number in range(12):
                tag = "even" if number % 2 == 0 else "odd"
                message = Message("Orders", b"%d" % number, tags=tag, keys=f"k{number}", properties={"size": "L"})
                producer.send(message)
        yield server


def run(server: EmbeddedServer, *words: str, code: int = 0, **more: str) -> dict:
    environment = {**os.environ, "NAMESRV_ADDR": server.namesrv, **more}
    command = [*MQ, "replay", "Orders", *words, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return {"error": done.stderr} if code else json.loads(done.stdout)


def stored(server: EmbeddedServer, topic: str) -> list[tuple[str, str | None, list[str], str | None]]:
    found = server.messages(topic)
    return sorted((one.body.decode(), one.tags, one.keys, one.properties.get("size")) for one in found)


def test_messages_of_a_topic_keep_all_but_their_ids(server: EmbeddedServer) -> None:
    sent = run(server, "--to", "Again", "--tags", "even", "--rate", "1000")
    assert (sent["messages"], sent["bodyBytes"], sent["what"]) == (6, 7, "sent")
    assert stored(server, "Again") == [one for one in stored(server, "Orders") if one[1] == "even"]
    ids = {one.unique_key for one in server.messages("Orders")}
    assert not ids & {one.unique_key for one in server.messages("Again")}


def test_messages_of_a_store_with_their_ids_to_the_topic_that_they_are_of(server: EmbeddedServer) -> None:
    assert run(server, "--store", server.store_path, "--to", "OfStore", "--keep-ids")["messages"] == 12
    assert stored(server, "OfStore") == stored(server, "Orders")
    assert {one.unique_key for one in server.messages("OfStore")} == {
        one.unique_key for one in server.messages("Orders")
    }


def test_a_dry_run_sends_nothing(server: EmbeddedServer) -> None:
    would = run(server, "--to", "Never", "--key", "k3", "--dry-run")
    assert (would["what"], would["messages"]) == ("would be sent", 1)
    assert run(server, "--to", "Never", "--from", "2000-01-01", "--until", "2000-01-02", "--dry-run")["messages"] == 0
    assert run(server, "--store", server.store_path, "--to", "Never", "--count", "5", "--dry-run")["messages"] == 5
    assert "Never" not in server_topics(server)


def server_topics(server: EmbeddedServer) -> str:
    environment = {**os.environ, "NAMESRV_ADDR": server.namesrv}
    return subprocess.run([*MQ, "admin", "topicList"], env=environment, capture_output=True, text=True).stdout


def test_a_place_that_a_store_does_not_have_is_said(server: EmbeddedServer) -> None:
    told = run(server, "--store", server.store_path, "--to", "Never", "--from", "latest", code=1)
    assert "a store has no position 'latest' to start from; use another --from" in told["error"]
    told = run(server, "--store", server.store_path, "--to", "Never", "--from", "9" * 5000, code=1)
    assert "is not a position" in told["error"]


KAFKA = """
import json, types

PATH = {path!r}

class KafkaConsumer:
    def __init__(self, topic, **settings):
        self.at = json.load(open(PATH)).get(settings["group_id"], 0)
        self.group = settings["group_id"]
    def poll(self, timeout_ms, max_records):
        records = [
            types.SimpleNamespace(
                topic="Orders", partition=0, offset=at, key=b"k%d" % at, value=b"%d" % at, headers=[("size", b"L")]
            )
            for at in range(self.at, min(self.at + max_records, 100))
        ]
        self.at += len(records)
        return {{0: records}} if records else {{}}
    def assignment(self):
        return {{0}}
    def partitions_for_topic(self, topic):
        return {{0}}
    def commit(self):
        json.dump({{self.group: self.at}}, open(PATH, "w"))
    def close(self, autocommit):
        pass
"""


def test_messages_of_kafka_come_over_in_runs_that_go_on_where_the_last_one_was(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "offsets.json").write_text("{}")
    (tmp_path / "kafka" / "__init__.py").write_text(KAFKA.format(path=str(tmp_path / "offsets.json")))
    (tmp_path / "kafka" / "errors.py").write_text("class KafkaError(Exception): pass\n")
    words = ["--kafka", "kafka:9092", "--to", "OfKafka", "--idle", "0"]
    first = run(server, *words, "--count", "60", PYTHONPATH=str(tmp_path))
    second = run(server, *words, PYTHONPATH=str(tmp_path))
    assert [one["messages"] for one in (first, second)] == [60, 40]
    found = sorted((int(one.body), one.keys, one.properties["size"]) for one in server.messages("OfKafka"))
    assert found == [(at, [f"k{at}"], "L") for at in range(100)]
    assert len({one.queue_id for one in server.messages("OfKafka")}) == 1
