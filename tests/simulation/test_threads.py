"""Threads and disks on virtual time keep what the simulation relies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.simulation.world import World


def test_a_thread_waits_on_the_clock_and_is_woken_by_the_reactor() -> None:
    with World(1) as world:
        host, said = world.boot("a"), []
        threads = world.threads["a"]
        condition = threads.condition()

        def run() -> None:
            with condition:
                said.append((condition.wait(5.0), round(world.seconds)))
                said.append((condition.wait(60.0), round(world.seconds)))

        thread = threads.start(run, "waits")
        host.callLater(20.0, condition.notify)
        world.run(10.0)
        assert (said, thread.is_alive()) == ([(False, 5)], True)
        world.run(20.0)
        assert (said, thread.is_alive()) == ([(False, 5), (True, 20)], False)


def test_a_paused_host_holds_its_threads_and_a_killed_one_ends_them() -> None:
    with World(1) as world:
        host, said = world.boot("a"), []
        threads = world.threads["a"]
        event = threads.event()

        def run() -> None:
            said.append(event.wait(2.0))
            event.wait(None)
            said.append("never")

        thread = threads.start(run, "waits")
        world.run(0.1)
        host.pause()
        world.run(10.0)
        assert said == []
        host.resume()
        world.run(1.0)
        threads.kill()
        event.set()
        assert (said, thread.is_alive()) == ([False], False)


def test_a_failure_of_a_thread_is_kept() -> None:
    with World(1) as world:
        world.boot("a")
        world.threads["a"].start(lambda: {}["none"], "fails")
        world.run(1.0)
        assert [error.type for error in world.threads["a"].errors] == [KeyError]


@pytest.mark.parametrize(("wait", "there"), [(0.5, b"old"), (2.5, b"one")])
def test_a_sync_makes_durable_what_was_there_when_it_began_once_it_has_ended(wait: float, there: bytes) -> None:
    with World(2) as world:
        world.boot("a")
        disk = world.disk("a")
        disk.threads, disk.latency = world.threads["a"], (2.0, 2.0)
        path = disk.root / "file"
        path.write_bytes(b"old")
        disk.watch()

        def sync() -> None:
            path.write_bytes(b"one")
            _sync(path)

        disk.threads.start(sync, "syncs")
        world.run(wait)
        path.write_bytes(b"two")
        durable = disk._recorder._data[path.stat().st_ino]
        assert durable == there
        disk.cut_power()
        assert (disk.root / "file").read_bytes() in (there, b"two")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fdatasync(descriptor)
    os.close(descriptor)
