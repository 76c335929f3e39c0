"""Ordered broker groups as processes: ZooKeeper, a name server, masters with their slaves; and a load that is checked."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from interop.peers.clients import PROJECT
from interop.peers.line_peer import LinePeer, Record
from interop.peers.process import PATIENCE_SECONDS, PeerFailed, Process, free_port, wait_until
from interop.peers.replicas import Member
from interop.peers.servers import COMMANDS
from interop.peers.zookeeper import ZooKeeperEnsemble, ZooKeeperServer
from twisted_mq.ordering.documents import decode_lists
from twisted_mq.ordering.lists import Lists
from twisted_mq.ordering.paths import member_path, unit_path
from twisted_mq.protocol.names.routes import MASTER_ID

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]
CHROOT = "/mq"
MASTER, SLAVE = 0, 1
ROLES = {MASTER: "SYNC_MASTER", SLAVE: "SLAVE"}


@attrs.define(eq=False)
class OrderedGroups:
    """`names` are the broker groups; `settings` come on top of every broker's."""

    directory: Path
    names: tuple[str, ...]
    session_seconds: float = 2.0
    settings: dict[str, object] = attrs.field(factory=dict)
    auth: str = ""
    """USER:PASSWORD at ZooKeeper, of everybody."""
    clocks: dict[str, float] = attrs.field(factory=dict)
    """By how many seconds the wall clocks of groups are ahead."""
    ensemble: ZooKeeperEnsemble | None = None
    """In the place of `zookeeper`, one server."""
    members: dict[tuple[str, int], Member] = attrs.field(factory=dict)
    name_server_port: int = attrs.field(factory=free_port)
    zookeeper: ZooKeeperServer = attrs.field(init=False)
    _name_server: Process | None = None
    _kazoo: KazooClient | None = None

    def __attrs_post_init__(self) -> None:
        self.zookeeper = ZooKeeperServer(self.directory / "zookeeper")

    @property
    def name_server(self) -> str:
        return f"127.0.0.1:{self.name_server_port}"

    @property
    def coordinator(self) -> str:
        return self._servers.address + CHROOT

    @property
    def _servers(self) -> ZooKeeperServer | ZooKeeperEnsemble:
        return self.ensemble or self.zookeeper

    @property
    def stores(self) -> list[str]:
        """Return the stores of the masters and slaves."""
        return [str(member.store) for member in self.members.values()]

    # life

    def start(self) -> None:
        self._servers.start()
        self.start_name_server()
        self._servers.wait_serving()
        self._kazoo = KazooClient(
            self._servers.address,
            timeout=10,
            connection_retry={"max_tries": -1, "max_delay": 1},
            command_retry={"max_tries": -1, "max_delay": 1, "deadline": PATIENCE_SECONDS},
            auth_data=[("digest", self.auth)] if self.auth else None,
        )
        self._kazoo.start(60)
        self._kazoo.ensure_path(CHROOT)
        self.start_members(self.add(name, broker_id) for name in self.names for broker_id in (MASTER, SLAVE))

    def start_name_server(self) -> None:
        file = self.directory / "namesrv.conf"
        file.write_text(f"listenPort={self.name_server_port}\nbindAddress=127.0.0.1\nsupportActingMaster=true\n")
        command = COMMANDS["ours"](self.directory, file, file)[0]
        self._name_server = Process.start(command, self.directory / "namesrv.log", self.directory)
        self._name_server.wait_listening(self.name_server_port)

    def wait_registered(self) -> None:
        """Return once the name server knows the masters of all groups: a restarted one gets them within 30 s."""
        command = [*MQ, "admin", "clusterList", "-n", self.name_server]

        def known() -> bool:
            run = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
            return all(re.search(rf"\s{name}\s+{MASTER_ID}\s", run.stdout) for name in self.names)

        wait_until(known, f"masters of {', '.join(self.names)} at the name server")

    def stop_name_server(self) -> None:
        assert self._name_server is not None
        self._name_server.stop()

    def add(self, name: str, broker_id: int) -> Member:
        """A broker, not started."""
        settings: dict[str, object] = {
            "brokerName": name,
            "brokerRole": ROLES[broker_id],
            "orderCoordinator": self.coordinator,
            "orderSessionTimeoutMillis": int(self.session_seconds * 1000),
            **({"orderCoordinatorAuth": self.auth} if self.auth else {}),
            **self.settings,
        }
        directory = self.directory / f"{name}-{broker_id}"
        environment = ahead(self.clocks[name]) if name in self.clocks else None
        member = Member("ours", broker_id, directory, self.name_server_port, settings, environment=environment)
        self.members[name, broker_id] = member
        return member

    @staticmethod
    def start_members(members: Iterable[Member]) -> None:
        """Side by side."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(Member.start, members))

    def stop(self) -> None:
        if self._kazoo is not None:
            self._kazoo.stop()
            self._kazoo.close()
        for member in self.members.values():
            member.signal(signal.SIGCONT)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(Member.stop, self.members.values()))
        if self._name_server is not None:
            self._name_server.stop()
        self._servers.kill()

    # what operators do and see

    def order_command(self, *arguments: str) -> list[str]:
        """The command line of `mq order`."""
        where = ["--namesrv", self.name_server, "--coordinator", self.coordinator, "--auth", self.auth]
        return [*MQ, "order", arguments[0], *where, *arguments[1:]]

    def order(self, *arguments: str) -> Any:
        """Return the JSON output of a command of `mq order`."""
        command = self.order_command(*arguments, "--json")
        run = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def create(self, topic: str, queues: int, *options: str, groups: Iterable[str] = ()) -> None:
        """Declare an ordered topic, and wait until all its groups are in its send lists."""
        named = tuple(groups) or self.names
        self.order("create", topic, "--queues", str(queues), "--groups", ",".join(named), *options)
        units = ["all"] if "--together" in options else [str(queue) for queue in range(queues)]
        self.wait_lists(topic, units, lambda lists: set(lists.send) == set(named))

    def audit(self) -> Any:
        """Return the result of the audit of all stores; a failure is not an error here."""
        run = subprocess.run(
            [*MQ, "order", "audit", *self.stores, "--json"], capture_output=True, text=True, cwd=PROJECT
        )
        return json.loads(run.stdout)

    def lists(self, topic: str, unit: str = "0") -> Lists:
        assert self._kazoo is not None
        path = unit_path(topic, unit)
        return decode_lists(path, self._kazoo.retry(self._kazoo.get, CHROOT + path)[0])

    def sessions(self) -> list[int]:
        """Return the sessions of the brokers, in the order of `members`; raises NoNodeError if one has none."""
        assert self._kazoo is not None
        paths = [CHROOT + member_path(*member) for member in self.members]
        return [self._kazoo.retry(self._kazoo.get, path)[1].ephemeralOwner for path in paths]

    def wait_lists(
        self, topic: str, units: Iterable[str], promise: Callable[[Lists], object], seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Return once the lists of all units are as wanted."""
        for unit in units:
            seen: list[object] = []

            def kept(unit: str = unit, seen: list[object] = seen) -> object:
                try:
                    seen[:] = [self.lists(topic, unit)]
                    return promise(self.lists(topic, unit))
                except KazooException as failure:
                    seen[:] = [failure]
                    return False

            try:
                wait_until(kept, f"lists of {topic} {unit}", seconds)
            except Exception as failure:
                raise AssertionError(f"{failure}: {seen}") from failure

    def writes(self) -> int:
        """Return the number of changes since the coordinator's start: the count in its last transaction's number."""
        line = next(line for line in self.zookeeper.asked(b"srvr").decode().splitlines() if line.startswith("Zxid"))
        return int(line.split()[-1], 16) & 0xFFFFFFFF


def ahead(seconds: float) -> dict[str, str]:
    """The environment of a process of Python whose wall clock is ahead by that."""
    path = f"{PROJECT / 'interop' / 'peers' / 'clock'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return {**os.environ, "PYTHONPATH": path, "MQ_CLOCK_AHEAD": str(seconds)}


class OrderedPeer(LinePeer):
    """An ordered producer or consumer in its own process."""

    def __init__(self, groups: OrderedGroups, topic: str, name: str) -> None:
        command = [sys.executable, "-m", "interop.peers.ordered_program"]
        super().__init__(command, groups.directory, name, start_in=PROJECT)
        self.groups = groups
        self.topic = topic
        self.name = name

    def signal(self, number: int) -> None:
        self._process.child.send_signal(number)

    def _begin(self, command: str, group: str, **more: Any) -> Any:
        arguments = {
            "coordinator": self.groups.coordinator,
            "session_seconds": self.groups.session_seconds,
            "auth": self.groups.auth,
            "name_server": self.groups.name_server,
            "ports": {},
        }
        arguments |= {"name": self.name, "group": group, "topic": self.topic, **more}
        return self.request(command, seconds=PATIENCE_SECONDS, **arguments)


class OrderedSender(OrderedPeer):
    """Sends numbers, a few at a time, to all queues of its topic."""

    def begin(self, command: str, /, **arguments: Any) -> int:
        return super().begin(command, **arguments)

    def send(self, queues: int, *, burst: int = 8, pause: float = 0.05, **more: Any) -> None:
        self._begin("send", "senders", queues=queues, burst=burst, pause=pause, **more)

    def rate(self, queues: int, *, in_flight: int, seconds: float, **more: Any) -> Record:
        """Return the answer of the program's `rate`; the producer of each topic stays for the next call."""
        answer: Record = self._begin("rate", "senders", queues=queues, in_flight=in_flight, for_seconds=seconds, **more)
        return answer

    def sent(self) -> list[Record]:
        """Return the acknowledged messages, burst by burst."""
        return self.events("sent", self.name)

    def acknowledged(self) -> dict[str, int]:
        """Return the number of messages of each key, counted from the first."""
        return {event["key"]: event["next"] for event in self.sent()}

    def wait_sent(self, keys: int, after: float, group: str | None = None, seconds: float = PATIENCE_SECONDS) -> float:
        """Return once each of so many keys had an acknowledgement after that time (by that group); when the last one had."""

        def firsts() -> dict[str, float]:
            times: dict[str, float] = {}
            for event in self.sent():
                if event["at"] > after and group in (None, event["group"]):
                    times.setdefault(event["key"], event["at"])
            return times

        wait_until(
            lambda: len(firsts()) == keys,
            lambda: f"{self.name} sends; {self.events('refused', self.name)[-3:]}",
            seconds,
        )
        return max(firsts().values())

    def finish(self, number: int | None = None, seconds: float = 100) -> Any:
        """Without a number: send no more, and wait until all is acknowledged."""
        return super().finish(super().begin("finish") if number is None else number, seconds)


class OrderedReceiver(OrderedPeer):
    """Consumes its topic."""

    def consume(self, **more: Any) -> None:
        self._begin("consume", "receivers", **more)

    def received(self) -> list[Record]:
        return self.events("message", self.name)


@attrs.define(eq=False)
class OrderedLoad:
    """All producers and consumers of a topic, and the order that must hold between them."""

    senders: list[OrderedSender] = attrs.field(factory=list)
    receivers: list[OrderedReceiver] = attrs.field(factory=list)

    def received(self) -> dict[str, list[int]]:
        """The numbers of each key as the group consumed them, those that came again left out."""
        events = sorted((one for peer in self.receivers for one in peer.received()), key=lambda event: event["at"])
        numbers: dict[str, dict[int, None]] = defaultdict(dict)
        for event in events:
            key, number = event["body"].split(" ")
            numbers[key].setdefault(int(number))
        return {key: list(found) for key, found in numbers.items()}

    def acknowledged(self) -> dict[str, int]:
        return {key: count for sender in self.senders for key, count in sender.acknowledged().items()}

    def wait_still(self, seconds: float) -> None:
        """Return once nothing has been acknowledged for that long."""
        counts, since = self.acknowledged(), now()

        def still() -> bool:
            nonlocal counts, since
            if self.acknowledged() != counts:
                counts, since = self.acknowledged(), now()
            return now() - since >= seconds

        wait_until(still, "no more acknowledgements")

    def check(self) -> None:
        """Each key's numbers came from 0 on without a gap or a swap, and none that was acknowledged is missing."""
        wanted = self.acknowledged()
        with contextlib.suppress(PeerFailed):
            wait_until(lambda: not self.missing(wanted), "everything comes")
        assert not self.missing(wanted), spans(self.missing(wanted))
        for key, numbers in self.received().items():
            assert numbers == list(range(len(numbers))), (key, faults(numbers))

    def missing(self, wanted: dict[str, int]) -> list[tuple[str, int]]:
        """Return the missing ones of this many messages of each key."""
        received = {key: set(numbers) for key, numbers in self.received().items()}
        return [(key, one) for key, count in wanted.items() for one in range(count) if one not in received.get(key, ())]

    def stop(self) -> None:
        for peer in (*self.senders, *self.receivers):
            peer.signal(signal.SIGCONT)
            peer.close()


def spans(missing: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """First and last ones of each stretch."""
    ends = set(missing)
    return [(key, one) for key, one in missing if not {(key, one - 1), (key, one + 1)} <= ends]


def faults(numbers: list[int]) -> list[tuple[int, int]]:
    """The first places where a number does not follow the one before it."""
    return [pair for pair in itertools.pairwise(numbers) if pair[1] != pair[0] + 1][:5]


def now() -> float:
    """The clock of the events."""
    return time.monotonic()
