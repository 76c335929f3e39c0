"""Actions and mistakes of operators, with a real ZooKeeper that asks for a password.

The answer to each mistake says what to do, and order is never broken. The wall clocks of the two groups differ by two hours in
all tests: nothing depends on them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NotEmptyError
from kazoo.security import CREATOR_ALL_ACL

from interop.peers.clients import PROJECT, unique
from interop.peers.ordered_groups import (
    CHROOT,
    MASTER,
    SLAVE,
    OrderedGroups,
    OrderedLoad,
    OrderedReceiver,
    OrderedSender,
    now,
)
from interop.peers.process import Process, wait_until
from interop.peers.replicas import Member
from interop.peers.requirements import require_java

pytestmark = pytest.mark.peer

HOUR_SECONDS = 3600.0
NAMES = ("broker-a", "broker-b")
CLOCKS = {"broker-a": HOUR_SECONDS, "broker-b": -HOUR_SECONDS}


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrderedGroups]:
    require_java()
    groups = OrderedGroups(tmp_path_factory.mktemp("ordered"), NAMES, auth="mq:secret", clocks=CLOCKS)
    try:
        groups.start()
        yield groups
    finally:
        groups.stop()


@pytest.fixture
def load() -> Iterator[OrderedLoad]:
    load = OrderedLoad()
    yield load
    load.stop()


def new_sender(groups: OrderedGroups, load: OrderedLoad, topic: str, name: str, **more: object) -> OrderedSender:
    sender = OrderedSender(groups, topic, name)
    load.senders.append(sender)
    sender.send(1, **more)
    return sender


def new_receiver(groups: OrderedGroups, load: OrderedLoad, topic: str) -> OrderedReceiver:
    receiver = OrderedReceiver(groups, topic, f"receiver-{topic}")
    load.receivers.append(receiver)
    receiver.consume()
    return receiver


@contextmanager
def hand(groups: OrderedGroups) -> Iterator[KazooClient]:
    """A client of ZooKeeper's with the password: what an operator's shell is."""
    client = KazooClient(groups.zookeeper.address, auth_data=[("digest", groups.auth)], default_acl=CREATOR_ALL_ACL)
    client.start(60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def shown(groups: OrderedGroups, topic: str) -> Any:
    """The first queue of a topic as `mq order show --json` has it."""
    return groups.order("show", topic)["units"][0]


def wait_blocked(groups: OrderedGroups, topic: str, wanted: Callable[[list[str]], object]) -> None:
    """Return once what `mq order show` says of what stands still is as wanted."""
    wait_until(lambda: wanted(shown(groups, topic)["blocked"]), lambda: f"{topic}: {shown(groups, topic)}")


def refused(groups: OrderedGroups, *arguments: str) -> str:
    """Return the error of a command of `mq order` that fails."""
    run = subprocess.run(groups.order_command(*arguments), capture_output=True, text=True, cwd=PROJECT)
    assert run.returncode == 1, run.stdout
    return run.stderr


def printed(process: Process) -> list[Any]:
    """The JSON objects that it printed."""
    return [json.loads(line) for line in process.output().splitlines() if line.startswith("{")]


# what operators do


def test_commands_show_watch_move_retire_and_restore(groups: OrderedGroups, load: OrderedLoad, tmp_path: Path) -> None:
    topic = unique("Orders")
    groups.create(topic, 1)
    new_receiver(groups, load, topic)
    sender = new_sender(groups, load, topic, "sender")
    sender.wait_sent(1, 0.0)
    command = groups.order_command("show", topic, "--watch", "--json")
    watching = Process.start(command, tmp_path / "watch.log", PROJECT)
    try:
        wait_until(lambda: printed(watching), "the first state")
        first = printed(watching)[0]["units"][0]
        old = first["head"]
        new = next(name for name in NAMES if name != old)
        assert (first["unit"], first["blocked"], [one["group"] for one in first["producers"]]) == ("0", [], ["senders"])
        moved = groups.order("move", topic, "0", new)
        assert moved == {"topic": topic, "unit": "0", "head": new, "epoch": first["epoch"] + 1}
        wait_until(lambda: printed(watching)[-1]["units"][0]["head"] == new, "the change is shown")
        groups.zookeeper.kill()
        wait_until(lambda: "the coordinator cannot be reached" in watching.output(), "its loss is told")
        groups.zookeeper.start()
        groups.zookeeper.wait_serving()
        sender.wait_sent(1, now())
        groups.wait_lists(topic, ["0"], lambda lists: set(lists.send) == set(NAMES))
        new = str(groups.lists(topic).head)  # on a busy machine its session may have ended
        old = next(name for name in NAMES if name != new)
        assert groups.order("retire", new) == {"group": new, "retired": True, "sendLists": []}
        wait_until(lambda: printed(watching)[-1]["units"][0]["head"] == old, "what came after it is shown")
    finally:
        watching.stop()
    sender.wait_sent(1, now(), old)
    state = groups.order("show", topic)
    obstacles = {one["group"]: one["obstacle"] for one in state["groups"]}
    assert obstacles == {old: None, new: f"{new}: it is retired: mq order restore reactivates it"}
    assert "it is retired: mq order restore reactivates it" in refused(groups, "move", topic, "0", new)
    assert groups.order("restore", new) == {"group": new, "retired": False}
    groups.wait_lists(topic, ["0"], lambda lists: lists.send == (old, new))
    sender.finish()
    load.check()


def test_each_thing_that_stands_still_says_why_and_goes_on_when_that_is_done(
    groups: OrderedGroups, load: OrderedLoad
) -> None:
    """Under the load of a sender, with clocks two hours apart: the order holds all the time."""
    topic = unique("Blocked")
    groups.create(topic, 1)
    sender = new_sender(groups, load, topic, "blocked")
    sender.wait_sent(1, 0.0)
    first = str(groups.lists(topic).head)
    second = next(name for name in NAMES if name != first)
    groups.order("move", topic, "0", second)
    wait_blocked(groups, topic, lambda said: said == [f"{first} waits for its first consumer group; start a consumer"])
    receiver = new_receiver(groups, load, topic)
    wait_blocked(groups, topic, lambda said: said == [])

    groups.wait_lists(topic, ["0"], lambda lists: lists.send == (second, first))
    sender.wait_sent(1, now(), second)
    receiver.kill()
    groups.order("move", topic, "0", first)
    idle = f"{second} is held by groups without a running consumer: receivers; start them"
    wait_blocked(groups, topic, lambda said: said == [idle])
    for broker_id in (MASTER, SLAVE):
        groups.members[second, broker_id].kill()
    gone = f"consumers wait: no broker of {second} is running; start one of them"
    wait_blocked(groups, topic, lambda said: said == [gone])
    sender.wait_sent(1, now(), first)
    groups.members[first, SLAVE].kill()
    waits = "senders wait: "
    slave = f"{first}: its slave (brokerId 1) is not connected to the coordinator"
    master = f"{second}: its master (brokerId 0) is not connected to the coordinator"
    wait_blocked(
        groups, topic, lambda said: said and said[0].startswith(waits) and slave in said[0] and master in said[0]
    )
    groups.start_members(groups.members[key] for key in ((first, SLAVE), (second, MASTER), (second, SLAVE)))
    load.receivers.append(again := OrderedReceiver(groups, topic, "again"))
    again.consume()
    groups.wait_lists(topic, ["0"], lambda lists: set(lists.send) == set(NAMES) and len(lists.consume) == 1)
    wait_blocked(groups, topic, lambda said: said == [])
    sender.wait_sent(1, now())
    sender.finish()
    load.check()
    assert groups.audit()["faults"] == []


# what operators get wrong


IMPOSSIBLE = (
    (b"", ": not JSON"),
    (b'{"epoch":9,"send":["broker-a","broker-a"],"consume":[["broker-a",9]]}', ": send: has a group twice"),
    (b'{"epoch":9,"send":["broker-b"],"consume":[["broker-a",9]]}', "does not end with the send list's head"),
    (b'{"epoch":9,"send":[],"consume":[["broker-a",10]]}', "has an epoch that is not one of 1 to epoch"),
    (None, "is missing"),
)
"""Manual changes of a queue's lists, and their fault; None: the node is deleted."""


def test_lists_that_a_hand_made_impossible_block_the_queue_until_they_are_put_right(
    groups: OrderedGroups, load: OrderedLoad
) -> None:
    topic = unique("Edited")
    groups.create(topic, 1)
    new_receiver(groups, load, topic)
    sender = new_sender(groups, load, topic, "sender")
    sender.wait_sent(1, 0.0)
    path = f"{CHROOT}/topics/{topic}/0"
    with hand(groups) as kazoo:
        for edited, says in IMPOSSIBLE:
            before = kazoo.get(path)[0]
            kazoo.delete(path) if edited is None else kazoo.set(path, edited)
            wait_blocked(
                groups, topic, lambda said, says=says: len(said) == 1 and "blocked: " in said[0] and says in said[0]
            )
            sent = sender.acknowledged()
            assert f"/topics/{topic}/0" in refused(groups, "move", topic, "0", "broker-b")
            assert sender.acknowledged() == sent
            kazoo.create(path, before) if edited is None else kazoo.set(path, before)
            sender.wait_sent(1, now())
    sender.finish()
    load.check()


def rewritten(kazoo: KazooClient, path: str) -> Callable[[], object]:
    """Write a node as it is: only its version rises."""
    kazoo.set(path, kazoo.get(path)[0])
    return lambda: None


def garbled(kazoo: KazooClient, path: str) -> Callable[[], object]:
    """Make a node's document none. Returns what makes it whole."""
    before = kazoo.get(path)[0]
    kazoo.set(path, b"\x00{nonsense")
    return lambda: kazoo.set(path, before)


def taken_back(kazoo: KazooClient, path: str) -> Callable[[], object]:
    """Write lists of an earlier epoch, as one who puts back a copy does."""
    before = kazoo.get(path)[0]
    lists = json.loads(before)
    kazoo.set(path, json.dumps({"epoch": lists["epoch"] - 1, "send": [], "consume": []}).encode())
    return lambda: kazoo.set(path, before)


def deleted(kazoo: KazooClient, path: str) -> Callable[[], object]:
    """Delete a node and all below it. Its owners create it again, perhaps before it is empty."""
    with contextlib.suppress(NotEmptyError):
        kazoo.delete(path, recursive=True)
    return lambda: None


def undeclared(kazoo: KazooClient, path: str) -> Callable[[], object]:
    """Delete a topic with its lists. Returns what puts both back."""
    names = [path, *(f"{path}/{name}" for name in kazoo.get_children(path))]
    before = {name: kazoo.get(name)[0] for name in names}
    kazoo.delete(path, recursive=True)

    def put_back() -> None:
        for name, data in before.items():
            kazoo.create(name, data)

    return put_back


EDITS: tuple[tuple[Callable[[KazooClient, str], Callable[[], object]], str, str], ...] = (
    (rewritten, "/topics/{topic}/0", ""),
    (garbled, "/topics/{topic}/0", "{path}: not JSON"),
    (taken_back, "/topics/{topic}/0", "{path}: epoch: must not be lower than"),
    (garbled, "/topics/{topic}", "{path}: not JSON"),
    (undeclared, "/topics/{topic}", ""),
    (garbled, "/groups/{head}", "{path}: not JSON"),
    (garbled, "/brokers/{head}/0", ""),
    (deleted, "/brokers/{head}/0", ""),
    (deleted, "/brokers/{head}/1", ""),
    (deleted, "/brokers/{head}", ""),
    (deleted, "/keeper", ""),
    (deleted, "/leaders/{topic}/0/consumers", ""),
)
"""Edits by hand: the edit, the node, and the one line that each master logs about it."""


def test_order_holds_and_sends_go_on_after_whatever_a_hand_did_to_a_node(
    groups: OrderedGroups, load: OrderedLoad
) -> None:
    """Under the load of a sender and a receiver. What brokers and clients do not put right themselves, the hand does."""
    topic = unique("Hand")
    groups.create(topic, 1)
    new_receiver(groups, load, topic)
    sender = new_sender(groups, load, topic, "sender")
    sender.wait_sent(1, 0.0)
    with hand(groups) as kazoo:
        for name in NAMES:
            if not kazoo.exists(f"{CHROOT}/groups/{name}"):
                kazoo.create(f"{CHROOT}/groups/{name}", b'{"retired":false}', makepath=True)
        for edit, place, says in EDITS:
            head = str(groups.lists(topic).head)
            path = place.format(topic=topic, head=head)
            masters = [groups.members[name, MASTER] for name in NAMES]
            before = [len(master.output()) for master in masters]
            put_right = edit(kazoo, CHROOT + path)
            if says:
                wanted = says.format(path=path)
                wait_until(
                    lambda wanted=wanted, masters=masters, before=before: all(
                        wanted in master.output()[start:] for master, start in zip(masters, before, strict=True)
                    ),
                    f"brokers say {wanted}",
                )
            put_right()
            sender.wait_sent(1, now())
            told = [
                master.output()[start:].count("ordered queues are blocked: ")
                for master, start in zip(masters, before, strict=True)
            ]
            assert told == [1 if says else 0] * 2, (edit.__name__, path, told)
        groups.wait_lists(topic, ["0"], lambda lists: set(lists.send) == set(NAMES) and len(lists.consume) == 1)
    sender.finish()
    load.check()
    assert groups.audit()["faults"] == []


def test_who_has_not_the_password_is_told_so_and_changes_nothing(groups: OrderedGroups, load: OrderedLoad) -> None:
    topic = unique("Private")
    groups.create(topic, 1)
    lists = groups.lists(topic)
    stranger = OrderedGroups(groups.directory, (), name_server_port=groups.name_server_port, auth="mq:wrong")
    stranger.zookeeper = groups.zookeeper
    for arguments in (("show", topic), ("move", topic, "0", "broker-b"), ("retire", "broker-a")):
        said = refused(stranger, *arguments)
        assert "check orderCoordinatorAuth and the access rights" in said, said
    sender = new_sender(stranger, load, topic, "stranger")
    wait_until(lambda: sender.events("refused", "stranger"), "the producer is told")
    refusal = sender.events("refused", "stranger")[0]
    assert (refusal["type"], sender.sent()) == ("CoordinatorUnreachable", [])
    assert "check orderCoordinatorAuth" in refusal["why"]
    assert groups.lists(topic) == lists


def test_a_chroot_that_is_not_the_clusters_is_named(groups: OrderedGroups) -> None:
    topic = unique("Orders")
    groups.create(topic, 1)
    with hand(groups) as kazoo:
        kazoo.create("/other")
    where = groups.zookeeper.address
    for chroot, says in (
        ("/wrong", "ZooKeeper has no node /wrong: create it, or correct the address"),
        ("/other", "the chroot of the coordinator's address is wrong"),
    ):
        assert says in refused(groups, "show", topic, "--coordinator", where + chroot)


@pytest.mark.parametrize(
    ("chroot", "auth", "says", "can_be_made"),
    [
        ("/late", "mq:secret", "ZooKeeper has no node /late: create it, or correct the address", True),
        (CHROOT, "mq:wrong", "check orderCoordinatorAuth and the access rights of the node", False),
    ],
    ids=["chroot", "rights"],
)  # fmt: skip
def test_broker_that_can_not_use_zookeeper_says_why_and_serves_its_other_topics(
    groups: OrderedGroups, chroot: str, auth: str, says: str, can_be_made: bool
) -> None:
    """A broker takes part as soon as a missing chroot is created."""
    settings = {
        "brokerName": "broker-c",
        "brokerRole": "SLAVE",
        "orderCoordinator": groups.zookeeper.address + chroot,
        "orderCoordinatorAuth": auth,
        "orderSessionTimeoutMillis": 2000,
    }
    directory = groups.directory / f"broker-c{chroot.replace('/', '-')}"
    broker = Member("ours", SLAVE, directory, groups.name_server_port, settings)
    broker.start()
    try:
        wait_until(lambda: "ordered queues are blocked" in broker.output() and says in broker.output(), broker.output)
        assert broker.max_offset("TBW102", 0) == 0
        if can_be_made:
            with hand(groups) as kazoo:
                kazoo.create(chroot)
                wait_until(lambda: kazoo.exists(f"{chroot}/brokers/broker-c/1"), "it takes part")
    finally:
        broker.stop()
