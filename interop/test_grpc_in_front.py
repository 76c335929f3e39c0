"""Our proxy as its own process in front of either name server and broker, with Apache's Python client of 5.x."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.peers import grpc_clients
from interop.peers.process import Process, free_port
from interop.peers.servers import Cluster

pytestmark = pytest.mark.peer

COUNT = 10


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Runs a scenario of the client's program against a proxy in front of the cluster."""
    grpc_clients.require_python_client()
    port, file = free_port(), tmp_path / "rmq-proxy.json"
    file.write_text(json.dumps({"namesrvAddr": cluster.name_server, "grpcServerPort": port}))
    twistd = [str(Path(sys.executable).parent / "twistd"), "--nodaemon", "--pidfile="]
    command = [*twistd, "mqproxy", "--config", str(file), "--bind", "127.0.0.1"]
    proxy = Process.start(command, tmp_path / "proxy.log", tmp_path, env=os.environ | {"HOME": str(tmp_path)})
    try:
        proxy.wait_listening(port)
        yield functools.partial(grpc_clients.run, tmp_path, f"127.0.0.1:{port}")
    finally:
        proxy.stop()


def test_simple_consumer_gets_what_is_sent(run: Callable[..., Any], topic: str, group: str) -> None:
    got = run("simple", topic, group)
    assert len(got["sent"]) == COUNT
    assert {key: value[0] for key, value in got["received"].items()} == {
        message_id: f"body {number}" for number, message_id in enumerate(got["sent"])
    }


def test_push_consumer_gets_what_is_sent(run: Callable[..., Any], topic: str, group: str) -> None:
    assert run("push", topic, group) == sorted(f"body {number}" for number in range(COUNT))
