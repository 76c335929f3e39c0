"""A master and a slave under one broker name, each Apache's or this project's, and what their stores hold."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from interop.peers.cutting_proxy import CuttingProxy
from interop.peers.process import Process, free_port, wait_until
from interop.peers.servers import (
    BROKER_NAME,
    CLUSTER_NAME,
    COMMANDS,
    GET_BROKER_CLUSTER_INFO,
    UPDATE_BROKER_CONFIG,
    answer_fields,
    ask,
    consumer_offset,
)
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES
from twisted_mq.storage.store_reader import StoreReader

GET_BROKER_HA_STATUS = 907
GET_MAX_OFFSET = 30
PROXY_HOST = "127.0.0.2"
LOG_FILE_BYTES = 4 * 1024 * 1024
"""Small, so that files roll under test."""


@attrs.define(eq=False)
class Member:
    """A broker of a pair; `kind` is a key of COMMANDS, `settings` are added to the pair's."""

    kind: str
    broker_id: int
    directory: Path
    name_server_port: int
    settings: dict[str, object] = attrs.field(factory=dict)
    port: int = attrs.field(factory=free_port)
    environment: dict[str, str] | None = None
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
        log = self.directory / "broker.log"
        process = self._process = Process.start(command, log, self.directory, env=self.environment)
        process.wait_listening(self.port)
        if self.kind == "apache":
            wait_until(lambda: "boot success" in process.output(), "Apache's broker has started")
            if "enableSlaveActingMaster" not in self.settings:  # such a master registers when its slaves are ready
                self.register()
        wait_until(self.is_registered, f"{self.kind} broker {self.broker_id} registers\n{process.output_tail()}")

    def register(self) -> None:
        """Have Apache's broker register now: setting the permission it has does that."""
        ask(self.port, UPDATE_BROKER_CONFIG, body=b"brokerPermission=6")

    def is_registered(self) -> bool:
        return self.address.encode() in ask(self.name_server_port, GET_BROKER_CLUSTER_INFO)

    def output(self) -> str:
        """Return the output of its process since its start."""
        assert self._process is not None
        return self._process.output()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()

    def signal(self, number: int) -> None:
        """To its process, where that runs."""
        if self._process is not None:
            self._process.child.send_signal(number)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill() if self.kind == "apache" else self._process.stop()

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The end of a queue."""
        return int(answer_fields(self.port, GET_MAX_OFFSET, topic=topic, queueId=str(queue_id))["offset"])

    def consumer_offset(self, group: str, topic: str, queue_id: int) -> int:
        """Return the committed offset of a group in a queue; -1 without one."""
        return consumer_offset(self.port, group, topic, queue_id)

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
            "transactionOpBatchInterval": 100,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
            **self.settings,
        }


@attrs.define(eq=False)
class ReplicaPair:
    """A name server, a master and a slave."""

    name_server_process: Process
    name_server_port: int
    master: Member
    slave: Member
    proxy: CuttingProxy | None = None

    @classmethod
    def make(
        cls,
        master: str,
        slave: str,
        directory: Path,
        *,
        through_proxy: bool = False,
        name_server: str = "ours",
        of_name_server: Mapping[str, object] | None = None,
        of_slave: Mapping[str, object] | None = None,
        **of_master: object,
    ) -> ReplicaPair:
        """Start the name server and the master; the slave is started by its test."""
        port = free_port()
        file = directory / "namesrv.conf"
        settings = {"listenPort": port, "bindAddress": "127.0.0.1", **(of_name_server or {})}
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = COMMANDS[name_server](directory, file, file)[0]
        process = Process.start(command, directory / "namesrv.log", directory)
        pair = cls(
            process,
            port,
            Member(master, 0, directory / "master", port, dict(of_master)),
            Member(slave, 1, directory / "slave", port, dict(of_slave or {})),
        )
        process.wait_listening(port)
        if through_proxy:
            pair.put_proxy_between()
        pair.master.start()
        return pair

    def put_proxy_between(self) -> None:
        """Have the slave reach the master through a proxy.

        This project's slave uses haMasterAddress. Apache's ignores that and uses the address that the master registers:
        at another loopback address, where the proxy has the port.
        """
        port = self.master.port + 1
        if self.slave.kind == "ours":
            self.proxy = CuttingProxy(port)
            self.slave.settings["haMasterAddress"] = self.proxy.address
        else:
            self.proxy = CuttingProxy(port, PROXY_HOST, port)
            self.master.settings["brokerIP2"] = PROXY_HOST

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

    def wait_acknowledged(self, part: float, start: int) -> None:
        """Return once the slave acknowledged that part of the log from `start` to its end."""

        def acknowledged() -> bool:
            status = self.master.ha_status()
            wanted = start + part * (status["masterCommitLogMaxOffset"] - start)
            return any(slave["slaveAckOffset"] >= wanted for slave in status["haConnectionInfo"])

        wait_until(acknowledged, f"the slave has {part:.0%} of what is behind {start}")

    def stop(self) -> None:
        if self.proxy is not None:
            self.proxy.stop()
        for process in (self.slave, self.master, self.name_server_process):
            process.stop()


def queues(store: Path) -> dict[tuple[str, int], tuple[int, bytes]]:
    """(first offset, all entries as stored) of every queue that has one."""
    found: dict[tuple[str, int], tuple[int, bytes]] = {}
    for queue in StoreReader(str(store)).queues():
        count = queue.max_offset - queue.min_offset
        if count:
            data = b"".join(file.read_bytes() for file in sorted(Path(queue.directory).iterdir()))
            found[queue.topic, queue.queue_id] = queue.min_offset, data[: count * ENTRY_BYTES]
    return found
