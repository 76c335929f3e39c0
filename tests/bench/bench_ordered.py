"""Ordered groups as processes with a real ZooKeeper: time of a failover, sends a second, ZooKeeper's writes at rest.

.venv/bin/python -m tests.bench.bench_ordered [--sessions 2,6] [--queues 1000] [--seconds 10]

A failover is timed from the kill of the master that takes the sends to the next acknowledged and the next consumed message
of each of two queues, as the clients' processes saw them. Sends are counted from one process with 64 on their way to each
of four queues: to an ordered topic, then to a plain one of the same SYNC_MASTER, whose slave has to have them too.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interop.peers.ordered_groups import (
    MASTER,
    OrderedGroups,
    OrderedLoad,
    OrderedReceiver,
    OrderedSender,
    now,
)
from interop.peers.process import wait_until
from interop.peers.toolchain import missing_tools

QUEUES = 4
IN_FLIGHT = 64
WARM_UP_SECONDS = 2.0


@contextmanager
def running(names: tuple[str, ...], session_seconds: float) -> Iterator[tuple[OrderedGroups, OrderedLoad]]:
    directory = Path(tempfile.mkdtemp(prefix="mq-bench-ordered-"))
    groups, load = OrderedGroups(directory, names, session_seconds), OrderedLoad()
    try:
        groups.start()
        yield groups, load
    finally:
        load.stop()
        groups.stop()
        shutil.rmtree(directory, ignore_errors=True)


def failover(session_seconds: float) -> tuple[float, float]:
    """Seconds from the kill to the next acknowledgement, and to the next consumed message, of the slower of two queues."""
    with running(("broker-a", "broker-b"), session_seconds) as (groups, load):
        groups.create("Orders", 2)
        sender, receiver = OrderedSender(groups, "Orders", "sender"), OrderedReceiver(groups, "Orders", "receiver")
        load.senders.append(sender)
        load.receivers.append(receiver)
        receiver.consume()
        sender.send(2)
        sender.wait_sent(2, 0.0)
        lost = groups.lists("Orders").head
        assert lost is not None
        counts = sender.acknowledged()
        groups.members[lost, MASTER].kill()
        killed = now()
        acknowledged = sender.wait_sent(2, killed, next(name for name in groups.names if name != lost))
        wait_until(lambda: all(first(receiver, key, killed, counts) for key in counts), "consumed after the kill")
        consumed = max(first(receiver, key, killed, counts) for key in counts)
        return acknowledged - killed, consumed - killed


def first(receiver: OrderedReceiver, key: str, killed: float, counts: dict[str, int]) -> float:
    """When the first message of a key came that was not acknowledged before the kill; 0 before that."""
    for event in receiver.received():
        name, number = event["body"].split(" ")
        if name == key and int(number) >= counts[key] and event["at"] > killed:
            return float(event["at"])
    return 0.0


def sends(seconds: float) -> tuple[float, float]:
    """Ordered and plain sends a second."""
    with running(("broker-a",), 6.0) as (groups, load):
        groups.create("Orders", QUEUES)
        rates = []
        for plain in (False, True):
            sender = OrderedSender(groups, "Plain" if plain else "Orders", f"sender-{plain}")
            load.senders.append(sender)
            sender.send(QUEUES, burst=IN_FLIGHT, pause=0.0, plain=plain)
            sender.wait_sent(QUEUES, 0.0)
            time.sleep(WARM_UP_SECONDS)
            before, began = sum(sender.acknowledged().values()), now()
            time.sleep(seconds)
            rates.append((sum(sender.acknowledged().values()) - before) / (now() - began))
            sender.finish()
        return rates[0], rates[1]


def writes_at_rest(queues: int, seconds: float) -> float:
    """ZooKeeper's transactions a second with so many ordered queues on three groups."""
    with running(("broker-a", "broker-b", "broker-c"), 6.0) as (groups, _):
        groups.create("Orders", queues)
        time.sleep(WARM_UP_SECONDS)
        before, began = groups.writes(), now()
        time.sleep(seconds)
        return (groups.writes() - before) / (now() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sessions", default="2,6")
    parser.add_argument("--queues", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    if missing_tools():
        print(f"left out: no {', '.join(missing_tools())} on the path, which ZooKeeper needs")
        return
    for session_seconds in map(float, options.sessions.split(",")):
        acknowledged, consumed = failover(session_seconds)
        print(
            f"sessions of {session_seconds:g} s: sends again {acknowledged:.2f} s after the kill, consumes {consumed:.2f} s"
        )
    ordered, plain = sends(options.seconds)
    print(f"sends a second: ordered {ordered:,.0f}, plain {plain:,.0f}: {ordered / plain:.2f}")
    rate = writes_at_rest(options.queues, options.seconds)
    print(f"{options.queues} ordered queues at rest: {rate:.1f} writes a second in ZooKeeper")


if __name__ == "__main__":
    main()
