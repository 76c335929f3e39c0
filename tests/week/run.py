"""A week of operations in an hour, with real processes beside a load: `python -m tests.week.run [--minutes 60] [--keep DIR]`.

Two masters with a slave each; every day has its work, done by the project's own commands. On Monday the servers' time of day is
put ahead by several days. At the end no send has failed, every message has come, all stores are sound, and no server has
logged a failure of its own. With `--minutes 0` no day lasts longer than its work.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from interop.peers.process import Process, wait_until
from tests.support.certificates import Authority
from tests.support.shifted_clock import ShiftedClock
from tests.week.released import VERSIONS, has_sources, there_and_back
from tests.week.servers import Server, command

ROOT = Path(__file__).parents[2]
TOPIC = "Orders"
FACE = "blocking"
MOVE_SECONDS = 180
"""The time in which clients turn to another broker: they look for routes each LOOK_SECONDS."""
LOOK_SECONDS, QUICK_LOOK_SECONDS = 30, 2
QUIET_SECONDS = 5
"""A broker that got nothing for so long gets nothing more from producers that know its permission."""
SETTINGS = {
    "brokerIP1": "127.0.0.1", "mappedFileSizeCommitLog": 1 << 16, "fileReservedTime": 24, "deleteWhen": "04",
    # on a disk that is fuller than this, expired files go at any hour
    "diskMaxUsedSpaceRatio": 95,
    "cleanResourceInterval": 500, "deleteCommitLogFilesInterval": 10, "defaultTopicQueueNums": 4,
    "tls.server.mode": "permissive", "tls.test.mode.enable": "false",
}  # fmt: skip
HOUR_SECONDS = 3600
OTHER_HOURS_SECONDS = 3.0
"""For how long it is looked whether files stay in another hour than that of deleteWhen."""


@attrs.define
class Week:
    """A run. `notes` have the actions and findings."""

    folder: Path
    day_seconds: float
    clock: ShiftedClock = attrs.field(init=False)
    authority: Authority = attrs.field(init=False)
    servers: dict[str, Server] = attrs.field(factory=dict)
    ended: list[Server] = attrs.field(factory=list)
    """Servers that were stopped for good."""
    load: Process | None = None
    notes: list[str] = attrs.field(factory=list)
    ahead_seconds: int = 0
    """Offset of the servers' time of day in seconds."""

    def __attrs_post_init__(self) -> None:
        self.clock = ShiftedClock(self.folder / "clock")
        self.authority = Authority(self.folder / "ca")

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(text, flush=True)

    # servers

    @property
    def name_server(self) -> str:
        return self.servers["namesrv"].address

    def broker(self, name: str, number: int = 0) -> Server:
        """Start a broker of a group."""
        label = name if number == 0 else f"{name}-slave"
        files = self.authority.issue(label)
        role = {"brokerRole": "ASYNC_MASTER" if number == 0 else "SLAVE", "brokerName": name, "brokerId": number}
        folder = self.folder / label
        tls = {"tls.server.certPath": files.certificate, "tls.server.keyPath": files.key}
        settings = {**SETTINGS, **role, **tls, "namesrvAddr": self.name_server, "storePathRootDir": folder / "store"}
        self.servers[label] = Server("mqbroker", folder, self.clock, settings)
        self.servers[label].start()
        return self.servers[label]

    def start(self) -> None:
        folder = self.folder / "namesrv"
        files = {"kvConfigPath": folder / "kv.json", "configStorePath": folder / "namesrv.properties"}
        self.servers["namesrv"] = Server("mqnamesrv", folder, self.clock, files)
        self.servers["namesrv"].start()
        for name in ("broker-a", "broker-b"):
            self.broker(name)
            self.broker(name, 1)
        command(
            "mqadmin", "updateTopic", "-t", TOPIC, "-c", "DefaultCluster", "-r", "4", "-w", "4", "-n", self.name_server
        )
        wait_until(lambda: "broker-b" in self._route(), "the topic has its route")
        words = [sys.executable, "-m", "interop.peers.rolling_load", FACE, self.name_server, TOPIC, str(self.folder)]
        words.append(str(LOOK_SECONDS if self.day_seconds else QUICK_LOOK_SECONDS))
        self.load = Process.start(words, self.folder / "load.log", ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
        wait_until((self.folder / "consumes").exists, "the load is consumed")

    def _route(self) -> str:
        return command("mqadmin", "topicRoute", "-t", TOPIC, "-n", self.name_server)

    def queue_ends(self, broker: str) -> int:
        """Messages that a broker has taken of the topic, all queues together."""
        rows = command("mqadmin", "topicStatus", "-t", TOPIC, "-n", self.name_server).splitlines()
        return sum(int(row.split()[3]) for row in rows if row.startswith(broker + " "))

    # days

    def retention_by_hour(self) -> None:
        """Monday: expired files stay in other hours, and go in the hour of deleteWhen."""
        master = self.servers["broker-a"]
        wait_until(lambda: len(list((master.store / "commitlog").iterdir())) > 2, "the log has some files")
        self._set_hour(12, days=2)
        time.sleep(OTHER_HOURS_SECONDS)
        assert master.first_offset() == 0, "a file went in another hour than that of deleteWhen"
        self._set_hour(4, days=1)
        wait_until(lambda: master.first_offset() > 0, "expired files go in the hour of deleteWhen")
        self.note(f"retention: the log of broker-a begins at {master.first_offset():,} after 04:00")
        self._set_hour(12)

    def _set_hour(self, hour: int, days: int = 0) -> None:
        """Put the servers' time of day to that hour of a later day."""
        now = time.localtime(time.time() + self.ahead_seconds)
        seconds = ((hour - now.tm_hour) % 24 + 24 * days) * HOUR_SECONDS
        self.clock.shift_wall(seconds)
        self.ahead_seconds += seconds

    def rotation(self) -> None:
        """Tuesday: logs are moved away, and go on in new files."""
        for server in self.servers.values():
            server.rotate()
        self.note(f"rotation: {len(self.servers)} logs go on in new files")

    def renewal(self) -> None:
        """Wednesday: certificates are replaced, and shown to the next clients."""
        for label, server in self.servers.items():
            if server.kind != "mqbroker":
                continue
            before = ssl.get_server_certificate(("127.0.0.1", server.port))
            self.authority.issue(label)
            wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", server.port)) != before, f"{label} shows it")  # noqa: B023
        self.note("renewal: all brokers show their new certificates, without a restart")

    def restarts(self) -> None:
        """Thursday: every server one after the other, slaves first; then one is killed."""
        for label in sorted(self.servers, key=lambda label: (label == "namesrv", not label.endswith("-slave"))):
            self.servers[label].restart()
        self.servers["broker-b"].kill()
        assert (self.servers["broker-b"].store / "abort").exists()
        self.servers["broker-b"].start()
        self.note(f"restarts: {len(self.servers)} servers, and a kill -9 of broker-b")

    def backup_and_restore(self) -> None:
        """Friday: a copy of a running store starts elsewhere, with its log in another folder."""
        ends = self.queue_ends("broker-a")
        copy, other = self.folder / "backup", self.folder / "other-machine"
        command("mq", "backup", str(self.servers["broker-a"].store), str(copy), "--copy")
        command("mq", "restore", str(copy), str(other / "store"))
        log = other / "log-disk" / "commitlog"
        log.parent.mkdir()
        (other / "store" / "commitlog").rename(log)
        server = Server("mqnamesrv", other / "namesrv", self.clock, {
            "kvConfigPath": other / "kv.json", "configStorePath": other / "namesrv.properties",
        })  # fmt: skip
        server.start()
        where = {"storePathRootDir": other / "store", "storePathCommitLog": log, "namesrvAddr": server.address}
        where["tls.server.mode"] = "disabled"
        broker = Server("mqbroker", other / "broker", self.clock, {**SETTINGS, "brokerName": "broker-a", **where})
        broker.start()
        rows = command("mqadmin", "topicStatus", "-t", TOPIC, "-n", server.address).splitlines()
        restored = sum(int(row.split()[3]) for row in rows if row.startswith("broker-a "))
        assert restored >= ends, (restored, ends)
        for one in (broker, server):
            self._end(one)
        self.note(f"backup: {restored:,} messages on another layout, of {ends:,} before it")

    def broker_added_and_removed(self) -> None:
        """Saturday: a third broker takes the topic; the second one is emptied and goes."""
        self.broker("broker-c")
        added = self.servers["broker-c"].address
        command("mqadmin", "updateTopic", "-t", TOPIC, "-b", added, "-r", "4", "-w", "4", "-n", self.name_server)
        wait_until(lambda: self.queue_ends("broker-c") > 0, "the new broker takes messages", MOVE_SECONDS)
        command("mqadmin", "wipeWritePerm", "-b", "broker-b", "-n", self.name_server)
        leaving = {"last": -1}

        def is_quiet() -> bool:
            last, leaving["last"] = leaving["last"], self.queue_ends("broker-b")
            time.sleep(QUIET_SECONDS)
            return last == leaving["last"]

        wait_until(is_quiet, "producers turn to the others", MOVE_SECONDS)
        wait_until(self._is_consumed, "consumers have taken all of the leaving broker", MOVE_SECONDS)
        for label in ("broker-b-slave", "broker-b"):
            self._end(self.servers.pop(label))
        wait_until(lambda: "broker-b" not in self._route(), "the route has it no more")
        self.note(f"moved: broker-c has {self.queue_ends('broker-c'):,} messages, broker-b is gone with nothing unread")

    def _is_consumed(self) -> bool:
        """Return True if no group waits for a message of broker-b."""
        store = self.servers["broker-b"].store / "config" / "consumerOffset.json"
        rows = command("mqadmin", "topicStatus", "-t", TOPIC, "-n", self.name_server).splitlines()
        ends = {row.split()[1]: int(row.split()[3]) for row in rows if row.startswith("broker-b ")}
        table = json.loads(_quoted(store.read_text()))["offsetTable"]
        offsets = [table[key] for key in table if key.startswith(f"{TOPIC}@")]
        return bool(offsets) and all(one.get(queue, 0) >= end for one in offsets for queue, end in ends.items())

    def upgrades(self) -> None:
        """Sunday: today's broker on the store of every release, and that release on it again, twice."""
        for version in VERSIONS:
            if not has_sources(version):
                self.note(f"upgrades: {version} NOT RUN, only a clone with its history has its sources")
                continue
            found = there_and_back(version, self.folder / f"release-{version}", self.clock)
            self.note(f"upgrades: from {version} and back, twice: both found all {found} messages")

    # the end

    def end(self) -> None:
        """Raises AssertionError where a promise was not kept."""
        (self.folder / "stop").touch()
        assert self.load is not None
        assert self.load.child.wait(300) == 0, self.load.output_tail()
        seen = json.loads(self.load.output().splitlines()[-1])
        assert (seen["failed"], seen["missing"]) == ({}, []), seen
        for server in reversed(self.servers.values()):
            self._end(server)
        self.note(
            f"{seen['sent']:,} messages sent, none failed, none missing; {len(self.ended)} servers ended with sound stores"
        )

    def _end(self, server: Server) -> None:
        """Stop a server for good; its store is sound, and its log has no failure of its own."""
        server.stop()
        if server.kind == "mqbroker":
            log = server.settings.get("storePathCommitLog")
            apart = [] if log is None else ["--commit-log", str(log)]
            command("mq", "store", "verify", str(server.settings["storePathRootDir"]), *apart)
        logs = "".join(file.read_text() for file in server.folder.glob("server.log*"))
        assert "Traceback" not in logs, f"{server.folder.name}: {logs[logs.index('Traceback') :][:2000]}"
        self.ended.append(server)

    def leave(self) -> None:
        """End what still runs."""
        processes = [self.load, *(server.process for server in self.servers.values())]
        for process in processes:
            if process is not None and process.child.poll() is None:
                process.kill()


def _quoted(text: str) -> str:
    """JSON of fastjson, whose maps have bare numbers as keys."""
    return re.sub(r"([{,])(\d+):", r'\1"\2":', text)


DAYS: tuple[Callable[[Week], None], ...] = (
    Week.retention_by_hour,
    Week.rotation,
    Week.renewal,
    Week.restarts,
    Week.backup_and_restore,
    Week.broker_added_and_removed,
    Week.upgrades,
)


def run(folder: Path, minutes: float) -> list[str]:
    """Every day in order; the notes. Raises AssertionError, PeerFailed."""
    week = Week(folder, minutes * 60 / len(DAYS))
    try:
        week.start()
        for day in DAYS:
            began = time.monotonic()
            day(week)
            time.sleep(max(0.0, week.day_seconds - (time.monotonic() - began)))
        week.end()
    finally:
        week.leave()
    return week.notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--keep", type=Path, help="an empty directory for logs and stores; else they are removed")
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        run(given.keep, given.minutes)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), given.minutes)


if __name__ == "__main__":
    main()
