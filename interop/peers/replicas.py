"""A master and a slave under one broker name, each Apache's or this project's, and what their stores hold."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import attrs

from interop.peers.process import Process, free_port, wait_until
from interop.peers.servers import (
    BROKER_NAME,
    CLUSTER_NAME,
    COMMANDS,
    GET_BROKER_CLUSTER_INFO,
    UPDATE_BROKER_CONFIG,
    ask,
)
from storage.readers import StoreReader

GET_BROKER_HA_STATUS = 907
LOG_FILE_BYTES = 4 * 1024 * 1024
"""Small, so that files roll under test."""


@attrs.define(eq=False)
class Member:
    """One broker of a pair; `kind` is a key of COMMANDS, `settings` come on top of the pair's."""

    kind: str
    broker_id: int
    directory: Path
    name_server_port: int
    settings: dict[str, object] = attrs.field(factory=dict)
    port: int = attrs.field(factory=free_port)
    _process: Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        return self.directory / "store"

    def start(self) -> None:
        """Start on the store it has, and wait until the name server knows it."""
        (self.directory / "home").mkdir(parents=True, exist_ok=True)
        file = self.directory / "broker.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        command = COMMANDS[self.kind](self.directory / "home", file, file)[1]
        process = self._process = Process.start(command, self.directory / "broker.log", self.directory)
        process.wait_listening(self.port)
        if self.kind == "apache":
            wait_until(lambda: "boot success" in process.output(), "Apache's broker has started")
            self.register()
        wait_until(self.is_registered, f"{self.kind} broker {self.broker_id} registers\n{process.output_tail()}")

    def register(self) -> None:
        """Have Apache's broker register now: setting the permission it has does that."""
        ask(self.port, UPDATE_BROKER_CONFIG, body=b"brokerPermission=6")

    def is_registered(self) -> bool:
        return self.address.encode() in ask(self.name_server_port, GET_BROKER_CLUSTER_INFO)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill() if self.kind == "apache" else self._process.stop()

    def ha_status(self) -> Any:
        """The body of GET_BROKER_HA_STATUS."""
        answer = ask(self.port, GET_BROKER_HA_STATUS)
        (mark,) = struct.unpack_from(">I", answer)
        return json.loads(answer[4 + (mark & 0xFFFFFF) :])

    def _settings(self) -> dict[str, object]:
        return {
            "brokerClusterName": CLUSTER_NAME,
            "brokerName": BROKER_NAME,
            "brokerId": self.broker_id,
            "brokerRole": "SLAVE" if self.broker_id else "ASYNC_MASTER",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "bindAddress": "127.0.0.1",
            "listenPort": self.port,
            "haListenPort": self.port + 1,
            "namesrvAddr": f"127.0.0.1:{self.name_server_port}",
            "mappedFileSizeCommitLog": LOG_FILE_BYTES,
            "slaveReadEnable": "true",
            "reviveQueueNum": 1,  # Apache's shutdown joins one idle thread after the other
            "reviveInterval": 100,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
            **self.settings,
        }


@attrs.define(eq=False)
class ReplicaPair:
    """A name server of this project, a master and a slave."""

    name_server_process: Process
    name_server_port: int
    master: Member
    slave: Member

    @classmethod
    def make(cls, master: str, slave: str, directory: Path, **of_master: object) -> ReplicaPair:
        """Start the name server and the master; the slave is started by its test."""
        port = free_port()
        file = directory / "namesrv.conf"
        file.write_text(f"listenPort={port}\nbindAddress=127.0.0.1\n")
        command = COMMANDS["ours"](directory, file, file)[0]
        process = Process.start(command, directory / "namesrv.log", directory)
        pair = cls(
            process,
            port,
            Member(master, 0, directory / "master", port, dict(of_master)),
            Member(slave, 1, directory / "slave", port),
        )
        process.wait_listening(port)
        pair.master.start()
        return pair

    @property
    def name_server(self) -> str:
        return f"127.0.0.1:{self.name_server_port}"

    def wait_caught_up(self) -> int:
        """Return the log's end once the slave acknowledged it and nothing is appended any more."""
        ends: list[int] = []

        def caught_up() -> bool:
            status = self.master.ha_status()
            end = status["masterCommitLogMaxOffset"]
            ends.append(end)
            return ends[-2:-1] == [end] and [one["slaveAckOffset"] for one in status["haConnectionInfo"]] == [end]

        wait_until(caught_up, "the slave holds the master's log")
        return ends[-1]

    def stop(self) -> None:
        for process in (self.slave, self.master, self.name_server_process):
            process.stop()


def records(store: Path) -> list[tuple[int, bytes]]:
    """(physical offset, stored bytes) of every message."""
    return [(offset, bytes(record)) for offset, record in StoreReader(str(store)).records()]


def queues(store: Path) -> dict[tuple[str, int], list[Any]]:
    """(queue offset, entry) of every queue that has one."""
    found = {(queue.topic, queue.queue_id): list(queue.entries()) for queue in StoreReader(str(store)).queues()}
    return {key: entries for key, entries in found.items() if entries}
