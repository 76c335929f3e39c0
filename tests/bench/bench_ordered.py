"""Ordered groups as processes with a real ZooKeeper: sends a second, the time of a failover, ZooKeeper's writes.

.venv/bin/python -m tests.bench.bench_ordered [--sessions 2,6] [--queues 1000] [--rounds 5] [--seconds 3] [--parts sends,...]

Sends: one process keeps 64 of 128 bytes on their way to each of four queues, in turn of an ordered topic and of a plain one of
the same SYNC_MASTER with inSyncReplicas=2, whose slave has to have them too; medians of the rounds, after one that does not
count. Processor time is that of a whole process.
Failover: from the kill of the master that takes the sends to the next acknowledged and the next consumed message, of the slower
of two queues, as the clients' processes saw them.
Writes: ZooKeeper's own count of transactions (its zxid), with so many ordered queues on three groups: without clients, and
while one producer sends to all of them and one consumer consumes all.
Progress goes to standard error, the table to standard output.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from interop.peers.ordered_groups import (
    MASTER,
    SLAVE,
    OrderedGroups,
    OrderedLoad,
    OrderedReceiver,
    OrderedSender,
    now,
)
from interop.peers.process import PeerFailed, wait_until
from interop.peers.toolchain import missing_tools
from tests.bench.bench_ha import processor_seconds

PARTS = ("sends", "failover", "writes")
QUEUES = 4
IN_FLIGHT = 64
ORDERED, PLAIN = "Orders", "Plain"
SESSION_SECONDS = 6.0
QUIET_SESSION_SECONDS = 10.0
"""Session time for a thousand queues: a busy machine must not end sessions, because that would be a failure."""
SETTLE_SECONDS = 3.0
START_SECONDS = 300.0
"""Until a thousand queues have their leaders, on a machine that others use."""
ROUND_SECONDS = 5.0
"""Between two messages to each of a thousand queues."""


@attrs.frozen
class Rate:
    """Sends a second, and microseconds of a processor a send."""

    a_second: float
    client_us: float
    master_us: float
    slave_us: float


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def row(figure: str, value: object, wanted: str = "") -> None:
    print(f"{figure:64}{value:>12}   {wanted}".rstrip(), flush=True)


@contextmanager
def running(
    names: tuple[str, ...], session_seconds: float, **settings: object
) -> Iterator[tuple[OrderedGroups, OrderedLoad]]:
    directory = Path(tempfile.mkdtemp(prefix="mq-bench-ordered-"))
    groups, load = OrderedGroups(directory, names, session_seconds, settings), OrderedLoad()
    try:
        began = now()
        groups.start()
        say(f"ZooKeeper and {2 * len(names)} brokers are up after {now() - began:.1f} s")
        yield groups, load
    finally:
        load.stop()
        groups.stop()
        shutil.rmtree(directory, ignore_errors=True)


# sends a second


def sends(rounds: int, seconds: float) -> tuple[list[Rate], list[Rate]]:
    """Ordered and plain, round by round."""
    with running(("broker-a",), SESSION_SECONDS, inSyncReplicas=2) as (groups, load):
        groups.create(ORDERED, QUEUES)
        sender = OrderedSender(groups, ORDERED, "rates")
        load.senders.append(sender)
        rate(groups, sender, ORDERED, seconds)
        rate(groups, sender, PLAIN, seconds)
        found: dict[str, list[Rate]] = {ORDERED: [], PLAIN: []}
        for number in range(rounds):
            for topic in (ORDERED, PLAIN) if number % 2 else (PLAIN, ORDERED):
                one = rate(groups, sender, topic, seconds)
                found[topic].append(one)
                say(f"round {number + 1}: {topic:8}{one.a_second:8,.0f} a second, us a send: client {one.client_us:.0f},"
                    f" master {one.master_us:.0f}, slave {one.slave_us:.0f}")  # fmt: skip
        return found[ORDERED], found[PLAIN]


def rate(groups: OrderedGroups, sender: OrderedSender, topic: str, seconds: float) -> Rate:
    brokers = [groups.members["broker-a", broker_id] for broker_id in (MASTER, SLAVE)]
    before = [processor_seconds(broker) for broker in brokers]
    done = sender.rate(QUEUES, in_flight=IN_FLIGHT, seconds=seconds, topic=topic, plain=topic == PLAIN)
    used = [done["processor"], *(processor_seconds(one) - was for one, was in zip(brokers, before, strict=True))]
    return Rate(done["sends"] / done["seconds"], *(one / done["sends"] * 1e6 for one in used))


def print_sends(ordered: list[Rate], plain: list[Rate]) -> None:
    ratio = statistics.median(one.a_second / other.a_second for one, other in zip(ordered, plain, strict=True))
    for name, rates in (("ordered", ordered), ("plain SYNC_MASTER", plain)):
        middle = [statistics.median(values) for values in zip(*map(attrs.astuple, rates), strict=True)]
        row(f"{name}: sends a second", f"{middle[0]:,.0f}")
        for process, used in zip(("producer", "master", "slave"), middle[1:], strict=True):
            row(f"{name}: us of the {process}'s processor a send", f"{used:.1f}")
    row("ordered beside plain", f"{ratio:.2f}", "at least 0.80")


# failover


def failover(session_seconds: float) -> tuple[float, float]:
    """Seconds from the kill to the next acknowledgement, and to the next consumed message, of the slower of two queues."""
    with running(("broker-a", "broker-b"), session_seconds) as (groups, load):
        groups.create(ORDERED, 2)
        sender, receiver = OrderedSender(groups, ORDERED, "sender"), OrderedReceiver(groups, ORDERED, "receiver")
        load.senders.append(sender)
        load.receivers.append(receiver)
        receiver.consume()
        sender.send(2)
        sender.wait_sent(2, 0.0)
        wait_until(lambda: len(load.received()) == 2, "both queues are consumed")
        head = {groups.lists(ORDERED, unit).head for unit in "01"}
        lost = groups.lists(ORDERED).head
        assert lost is not None
        if head != {lost}:
            groups.order("move", ORDERED, "1", lost)
            sender.wait_sent(2, now(), lost)
        say(f"the master of {lost} is killed, sessions last {session_seconds:g} s")
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


def print_failover(session_seconds: float, acknowledged: float, consumed: float) -> None:
    wanted = f"at most {session_seconds + 1:g}"
    row(
        f"sessions of {session_seconds:g} s: from the kill to the next acknowledgement, s",
        f"{acknowledged:.2f}",
        wanted,
    )
    row(f"sessions of {session_seconds:g} s: from the kill to the next consumed message, s", f"{consumed:.2f}", wanted)


# ZooKeeper's writes


def print_writes(queues: int, seconds: float) -> None:
    """ZooKeeper's transactions a second once all groups are in all send lists, and under load."""
    with running(("broker-a", "broker-b", "broker-c"), QUIET_SESSION_SECONDS) as (groups, load):
        began = now()
        groups.create(ORDERED, queues)
        row(f"{queues:,} ordered queues on three groups: declared and taken, s", f"{now() - began:.1f}")
        rate = writes_a_second(groups, seconds)
        row("the same: writes a second in ZooKeeper, no clients", f"{rate:.1f}", "at most 10")
        sender, receiver = OrderedSender(groups, ORDERED, "sender"), OrderedReceiver(groups, ORDERED, "receiver")
        load.senders.append(sender)
        load.receivers.append(receiver)
        receiver.consume()
        sender.send(queues, burst=1, pause=ROUND_SECONDS)
        try:
            sender.wait_sent(queues, 0.0, seconds=START_SECONDS)
            wait_until(lambda: len(load.received()) == queues, "all queues are consumed", START_SECONDS)
        except PeerFailed as failure:
            row("the same: writes a second in ZooKeeper, all sent to and consumed", "-", str(failure)[:120])
            return
        say(f"all {queues} are sent to and consumed after {now() - began:.1f} s")
        rate = writes_a_second(groups, seconds)
        row("the same: writes a second in ZooKeeper, all sent to and consumed", f"{rate:.1f}", "at most 10")


def writes_a_second(groups: OrderedGroups, seconds: float) -> float:
    time.sleep(SETTLE_SECONDS)
    before, began = groups.writes(), now()
    time.sleep(seconds)
    return (groups.writes() - before) / (now() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", default="2,6")
    parser.add_argument("--queues", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--quiet-seconds", type=float, default=20.0, help="for how long ZooKeeper's writes are counted")
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    if missing_tools():
        print(f"left out: no {', '.join(missing_tools())} on the path, which ZooKeeper needs")
        return
    parts = options.parts.split(",")
    if "sends" in parts:
        print_sends(*sends(options.rounds, options.seconds))
    if "failover" in parts:
        for session_seconds in map(float, options.sessions.split(",")):
            print_failover(session_seconds, *failover(session_seconds))
    if "writes" in parts:
        print_writes(options.queues, options.quiet_seconds)


if __name__ == "__main__":
    main()
