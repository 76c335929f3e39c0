"""Apache's dashboard as a process, asked as its own pages ask it.

Maven Central has no jar of it: build one from its repository, and name it in MQ_DASHBOARD_JAR (docs/how-to/console.md).
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from interop.peers.process import Process, free_port, wait_until
from interop.peers.toolchain import JAVA_OPTIONS, QUICK_START

JAR = os.environ.get("MQ_DASHBOARD_JAR")
ASK_SECONDS = 60


@attrs.define(eq=False)
class Dashboard:
    """A running dashboard at `port`."""

    process: Process
    port: int

    def get(self, path: str, /, **query: object) -> Any:
        """Return what a page shows. Raises AssertionError where the dashboard tells an error."""
        return self._ask(f"{path}?{urllib.parse.urlencode(query)}" if query else path, None)

    def post(self, path: str, body: object = None, /, **query: object) -> Any:
        """The same of a form."""
        where = f"{path}?{urllib.parse.urlencode(query)}" if query else path
        return self._ask(where, json.dumps(body).encode() if body is not None else b"")

    def _ask(self, where: str, body: bytes | None) -> Any:
        found = json.loads(self._read(where, body) or b"null")
        if isinstance(found, dict) and {"status", "data", "errMsg"} <= set(found):
            assert found["status"] == 0, f"{where}: {found['errMsg']}"
            return found["data"]
        return found

    def _read(self, where: str, body: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"} if body else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{where}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=ASK_SECONDS) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{where}: {refused} {refused.read().decode()[:500]}") from refused


@contextmanager
def running_dashboard(name_server: str, folder: Path) -> Iterator[Dashboard]:
    """Run it beside a cluster. The start takes some seconds."""
    folder.mkdir(parents=True)
    port = free_port()
    assert JAR is not None
    options = [f"-Duser.home={folder}", f"-Drocketmq.client.logRoot={folder}", "-Xmx256m"]
    settings = {
        "server.port": port,
        "server.address": "127.0.0.1",
        "rocketmq.config.namesrvAddrs": name_server,
        "rocketmq.config.isVIPChannel": "false",
        "rocketmq.config.dataPath": folder / "data",
    }
    command = ["java", *QUICK_START, *JAVA_OPTIONS, *options, "-jar", JAR]
    command += [f"--{key}={value}" for key, value in settings.items()]
    environment = os.environ | {"HOME": str(folder)}
    process = Process.start(command, folder / "dashboard.log", folder, env=environment)
    try:
        process.wait_listening(port)
        dashboard = Dashboard(process, port)
        wait_until(lambda: dashboard.get("/ops/homePage.query"), "the dashboard answers")
        yield dashboard
    finally:
        process.kill()
