"""A simulated world: its clock, network, disks and threads, its randomness, and its history."""

from __future__ import annotations

import hashlib
import random
import shutil
import struct
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.simulation.disk import Disk, in_place_of_real_ones
from tests.simulation.kazoo_threads import kazoo_in
from tests.simulation.threads import RunningThread, VirtualThreads
from twisted_mq.testing.virtual_network import VirtualHost, VirtualNetwork
from twisted_mq.testing.virtual_time import VirtualClock

START_SECONDS = 1_795_217_217.0
"""In November 2026, far from the hour at which stores delete."""

COARSE_SECONDS = 1.0
"""Allowed delay of idle timers shorter than this: a world of idle services costs little."""

THREAD_SECONDS = 3.0
"""The same of threads, which cost more."""

MOST_CALLS_A_SECOND = 20_000


class Broken(Exception):
    """A promise was broken; the text says which."""


class World:
    """Everything is drawn from `seed`. Use it as a context: it owns a folder, and the calls that put files on disk."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.clock = VirtualClock(START_SECONDS)
        self.network = VirtualNetwork(self.clock, self.random.getrandbits(32), split=0.05)
        self.network.delivered = self._delivered
        self.history: list[str] = []
        self.trace = hashlib.blake2b(digest_size=16)
        self.deliveries = 0
        self.threads: dict[str, VirtualThreads] = {}
        self._running = RunningThread()
        self._disks: dict[str, Disk] = {}
        shared = Path("/dev/shm")
        self._folder = Path(tempfile.mkdtemp(prefix="mq-simulation-", dir=shared if shared.is_dir() else None))
        self._folder_name = self._folder.name.encode()
        self._in_place = ExitStack()

    def __enter__(self) -> World:
        self._in_place.enter_context(in_place_of_real_ones(self._disk_of))
        kazoo = kazoo_in(self._running, self.clock.seconds, random.Random(f"kazoo of {self.seed}"))
        self._in_place.enter_context(kazoo)
        return self

    def __exit__(self, *error: object) -> None:
        for threads in self.threads.values():
            threads.kill()
        self._in_place.close()
        for disk in self._disks.values():
            disk.close()
        shutil.rmtree(self._folder)

    # what is in it

    def boot(self, name: str) -> VirtualHost:
        """The host of that name, new, with threads."""
        host = self.network.boot(name)
        host.slack = COARSE_SECONDS
        threads = self.threads[name] = VirtualThreads(self._running, host, THREAD_SECONDS)
        host.pool = threads
        return host

    def disk(self, name: str) -> Disk:
        """The disk of a host, made at its first use."""
        if name not in self._disks:
            self._disks[name] = Disk(self._folder / name, random.Random(self.random.getrandbits(32)))
        return self._disks[name]

    def _disk_of(self, path: str) -> Disk | None:
        folder = str(self._folder)
        return self._disks.get(path[len(folder) + 1 :].split("/", 1)[0]) if path.startswith(folder) else None

    # time

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.clock.now - START_SECONDS

    def run(self, seconds: float) -> None:
        """Let time pass. Raises Broken where a second holds more work than any real one."""
        end, timers, clock = self.clock.now + seconds, self.clock.timers, self.clock
        second, calls = int(clock.now), 0
        while (due := timers.next_time()) <= end:
            clock.now = max(clock.now, due)
            timers.run_next()
            calls += 1
            if int(clock.now) != second:
                second, calls = int(clock.now), 0
            elif calls > MOST_CALLS_A_SECOND:
                raise Broken(f"something runs in circles: {timers.active()[0].call}")
        clock.now = end

    # what is remembered

    def remark(self, text: str) -> None:
        """A line of the history."""
        self.history.append(f"{self.seconds:9.3f}  {text}")

    def note(self, text: str) -> None:
        """A line of the history and of the trace."""
        self.remark(text)
        self.trace.update(self.history[-1].encode())

    def _delivered(self, sender: str, receiver: str, data: bytes | None) -> None:
        self.deliveries += 1
        if data and self._folder_name in data:  # brokers tell where their store is
            data = data.replace(self._folder_name, b"")
        self.trace.update(struct.pack(">d", self.clock.now) + f"{sender}>{receiver}".encode() + (data or b"-"))

    def told(self, kind: str, **fields: Any) -> None:
        """As `note`, from fields."""
        self.note(f"{kind} " + " ".join(f"{name}={value}" for name, value in fields.items()))
