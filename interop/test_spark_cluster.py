"""A standalone Spark cluster and a Connect server whose Python has nothing of this project but what `mq spark pack` wrote."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.peers.spark_cluster import ConnectServer, SparkHome, StandaloneCluster
from tests.docs.blocks import ROOT, blocks
from tests.spark.commands.planted import plant
from tests.spark.live.brokers import Broker
from tests.spark.stores import StoreWriter
from tests.support.captures import unpack_store
from tests.support.embedded import EmbeddedProcess
from twisted_mq.cli.spark.commands import spark
from twisted_mq.spark.pack import write_pack
from twisted_mq.storage.tools.verify import verify

pytestmark = pytest.mark.peer
PROGRAM = str(ROOT / "interop" / "peers" / "spark_program.py")
JOBS = str(ROOT / "interop" / "peers" / "spark_jobs.py")
PAGE = ROOT / "docs" / "how-to" / "run-spark-jobs.md"
MESSAGES = 60
BODIES = sorted(f"order {number}" for number in range(MESSAGES))
ALL_JOBS_SECONDS = 1500
"""Thirteen jobs of several queries each, many times what they take where nothing else runs."""
SEEN = {"stored": BODIES, "sent": BODIES, "entries": MESSAGES}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> SparkHome:
    return SparkHome.made(tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="module")
def cluster(home: SparkHome) -> Iterator[StandaloneCluster]:
    started = StandaloneCluster(home)
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create a store of two log files, so that both workers read."""
    writer = StoreWriter(tmp_path_factory.mktemp("stores") / "broker-a" / "store", file_size=4096)
    for number in range(MESSAGES):
        writer.append(body=f"order {number}".encode(), properties={"TAGS": "new"}, queue_id=number % 3)
    return writer.write()


@pytest.fixture
def name_server(tmp_path: Path) -> Iterator[str]:
    """Yield the name server of a broker with the empty topic Copies."""
    with EmbeddedProcess(str(tmp_path / "live")) as server:
        Broker(server.name_server, server.broker).topic(4, "Copies")
        yield server.name_server


def run(home: SparkHome, *line: str, **environment: str) -> Any:
    """Return the last output of a program, which is JSON."""
    return run_lines(home, *line, **environment)[-1]


def run_lines(home: SparkHome, *line: str, **environment: str) -> list[Any]:
    """The lines of JSON that a program prints."""
    done = home.run(line, ALL_JOBS_SECONDS, **environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return [json.loads(text) for text in done.stdout.splitlines() if text.startswith(("{", "["))]


def check_tasks(tasks: list[list[str]], home: SparkHome) -> None:
    """Check that tasks ran the cluster's Python, and imported the project from the archive."""
    assert {python for python, _ in tasks} == {str(home.python)}
    assert all("rocketmq.zip/twisted_mq/spark" in file for _, file in tasks)


def test_workers_read_and_write_with_the_pack_alone(
    cluster: StandaloneCluster, store: str, name_server: str, tmp_path: Path
) -> None:
    pack = str(tmp_path / "rocketmq.zip")
    write_pack(pack)
    submit = ("spark-submit", "--master", cluster.url, "--py-files", pack)
    said = run(cluster.home, *submit, PROGRAM, store, name_server, str(tmp_path))
    check_tasks(said.pop("tasks"), cluster.home)
    assert said == {**SEEN, "streamed": 2 * MESSAGES}


def test_the_lines_of_the_manual_run_a_job(cluster: StandaloneCluster, store: str) -> None:
    (lines,) = (block.text for block in blocks(PAGE) if "spark-submit --master" in block.text)
    for shown, here in (
        ("/usr/bin/python3", str(cluster.home.python)),
        ("spark://master:7077", cluster.url),
        ("/stores", str(Path(store).parents[1])),
    ):
        assert shown in lines
        lines = lines.replace(shown, here)
    # these two are this checkout's; a variable for all would be seen by the cluster's Python
    ours = "".join(f'{name}() {{ PYTHONPATH={ROOT} command {name} "$@"; }}\n' for name in ("mq", "python"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = run(cluster.home, "bash", "-c", f"set -e\n{ours}{lines}", PATH=path)
    assert (said["job"], said["figures"]["messages"]) == ("volume", MESSAGES)


def test_a_connect_server_has_the_pack_from_its_client(
    home: SparkHome, store: str, name_server: str, tmp_path: Path
) -> None:
    server = ConnectServer(home)
    ours = {"SPARK_REMOTE": server.url, "PYTHONPATH": str(ROOT)}
    try:
        server.start()
        said = run(home, sys.executable, PROGRAM, store, name_server, str(tmp_path), **ours)
        check_tasks(said.pop("tasks"), home)
        assert said == SEEN
        job = run(home, sys.executable, "-m", "twisted_mq.cli.spark", "volume", store, "--json", **ours)
        assert job["figures"]["messages"] == MESSAGES
        planted, recorded = plant(tmp_path / "planted"), str(unpack_store("st", tmp_path))
        jobs = run_lines(home, sys.executable, JOBS, planted, recorded, name_server, str(tmp_path), **ours)
        check_jobs({name: (code, figures) for name, code, figures in jobs}, recorded)
    finally:
        server.stop()


def check_jobs(said: dict[str, tuple[int, dict[str, int]]], recorded: str) -> None:
    """Every job there is, with what a local session says of the same stores."""
    assert set(said) == {name for name in spark.commands if name != "pack"}
    sound = verify(recorded)
    expected = {
        "export": (0, {"messages": 13}),
        "replay": (0, {"messages sent": 7}),
        "audit": (0, {"messages": sound.messages, "bytes of messages": sound.message_bytes}),
        "search": (0, {"records": 15, "places that the index names": 15}),
        "dead-letters": (0, {"dead letters": 1, "retries": 2, "storms": 0}),
        "unfinished": (1, {"half messages committed": 1, "half messages open": 2}),
        "lag": (0, {"groups": 2, "groups behind": 1, "messages not read": 5}),
        "latency": (0, {}),
        "gaps": (1, {"gaps": 1, "missing offsets": 2}),
        "duplicates": (1, {"keys sent again": 1, "extra messages": 1}),
        "volume": (0, {"messages": 22}),
        "retention": (0, {}),
        "order": (0, {"ordered queues": 0, "faults": 0}),
    }
    found = {name: (code, {key: figures[key] for key in expected[name][1]}) for name, (code, figures) in said.items()}
    assert found == expected


def test_sql_and_the_shell_of_scala_find_the_format(home: SparkHome, store: str) -> None:
    """No Python program starts these: Java asks the installed Python which sources it has."""
    python, path = sys.executable, str(ROOT)
    lines = (
        f"CREATE TABLE logs USING rocketmq OPTIONS (path '{store}');"
        f"CREATE TEMPORARY VIEW orders AS SELECT * FROM logs WITH (path = '{store}', topic = 'Orders');"
        "SELECT 'seen', count(*), max(queueId) FROM orders;"
    )
    local = ("--master", "local[1]", "--conf", "spark.sql.catalogImplementation=in-memory")
    said = home.run(["spark-sql", *local, "-e", lines], PYSPARK_PYTHON=python, PYTHONPATH=path)
    assert f"seen\t{MESSAGES}\t2" in said.stdout, said.stdout[-2000:] + said.stderr[-4000:]
    program = home.folder / "seen.scala"
    program.write_text(
        f'val orders = spark.read.format("rocketmq").option("topic", "Orders").load("{store}")\n'
        'println("seen " + orders.count() + " " + orders.selectExpr("max(queueId)").first().get(0))\n'
        "System.exit(0)\n"
    )
    said = home.run(["spark-shell", *local, "-i", str(program)], PYSPARK_PYTHON=python, PYTHONPATH=path)
    assert f"seen {MESSAGES} 2" in said.stdout, said.stdout[-2000:] + said.stderr[-4000:]
