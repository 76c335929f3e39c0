"""A head that stands still for three sessions while another group takes its place, and then goes on with what it believed.

Its clocks stand still, too, as in a virtual machine that was suspended: by them its lease still runs. Or they go on, as
those of a process that was stopped. In both it is cut off from ZooKeeper when it goes on, so that nothing tells it what happened.
What it then takes from a sender that still aims at it must not be acknowledged.

make test takes a few rounds; MQ_ORDER_LONG=1 (make order-cases) 30 of each.
"""

from __future__ import annotations

import json
import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from interop.peers.cutting_proxy import CuttingProxy
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
from interop.peers.process import wait_until
from interop.peers.requirements import require_java
from interop.peers.servers import ask
from tests.support.shifted_clock import ShiftedClock
from twisted_mq.coordination.election import leading_term
from twisted_mq.ordering.paths import producers_path
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.messages.order_mark import ORDER_EXPECTED, OrderMark

pytestmark = pytest.mark.peer

LONG = os.environ.get("MQ_ORDER_LONG", "") not in ("", "0")
ROUNDS = 30 if LONG else 2
SESSION_SECONDS = 2.0
TOPIC, UNIT = "Orders", "0"
STALE, OTHER = "broker-a", "broker-b"


class Scene:
    """Two groups under load; the master of one of them has clocks that stop, and a way to ZooKeeper that can be cut."""

    def __init__(self, directory: Path) -> None:
        self.clock = ShiftedClock(directory / "clock")
        self.groups = OrderedGroups(directory, (STALE, OTHER), SESSION_SECONDS)
        self.load = OrderedLoad()

    def start(self) -> None:
        groups = self.groups
        groups.names = (OTHER,)
        groups.start()
        groups.names = (STALE, OTHER)
        self.proxy = CuttingProxy(groups.zookeeper.port)
        self.master, self.slave = groups.add(STALE, MASTER), groups.add(STALE, SLAVE)
        self.master.settings["orderCoordinator"] = self.proxy.address + CHROOT
        self.master.environment = {**os.environ, **self.clock.environment()}
        groups.start_members([self.master, self.slave])
        groups.create(TOPIC, 1)
        self.receiver = OrderedReceiver(groups, TOPIC, "receiver")
        self.load.receivers.append(self.receiver)
        self.receiver.consume()
        self.sender = OrderedSender(groups, TOPIC, "sender")
        self.load.senders.append(self.sender)
        self.sender.send(1)

    def stop(self) -> None:
        self.clock.thaw()
        self.proxy.heal()
        self.load.stop()
        self.groups.stop()
        self.proxy.stop()

    def gather(self) -> int:
        """Have the stale group take the sends; in which epoch."""
        both = {STALE, OTHER}
        self.groups.wait_lists(TOPIC, [UNIT], lambda lists: set(lists.send) == both and len(lists.consume) == 1)
        if self.groups.lists(TOPIC).head != STALE:
            self.groups.order("move", TOPIC, UNIT, STALE)
        self.groups.wait_lists(TOPIC, [UNIT], lambda lists: lists.head == STALE and len(lists.consume) == 1)
        self.sender.wait_sent(1, now(), STALE)
        return self.groups.lists(TOPIC).epoch

    def leader(self) -> int:
        client = KazooClient(self.groups.zookeeper.address)
        client.start(60)
        try:
            term = leading_term(client.get_children(CHROOT + producers_path(TOPIC, UNIT)))
        finally:
            client.stop()
            client.close()
        assert term is not None
        return term

    def send(self, epoch: int, leader: int, sequence: int) -> tuple[int | None, dict[str, Any]]:
        """Send to the stale master as if it were the head; code and fields of its answer, None where none comes."""
        mark = OrderMark(epoch, 0, leader, 1, sequence).encode()
        properties = f"UNIQ_KEY\x01stale\x02ORDERED\x01{mark}\x02"
        fields = {"a": "senders", "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": "0",
                  "k": "false", "m": "false", "i": properties}  # fmt: skip
        try:
            answer = ask(self.master.port, RequestCode.SEND_MESSAGE_V2, fields, b"stale 0")
        except TimeoutError:
            return None, {}
        (mark_and_length,) = struct.unpack_from(">I", answer)
        header = json.loads(answer[4 : 4 + (mark_and_length & 0xFFFFFF)])
        return header["code"], header.get("extFields") or {}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    require_java()
    scene = Scene(tmp_path_factory.mktemp("frozen"))
    try:
        scene.start()
        yield scene
        scene.sender.finish()
        scene.load.check()
    finally:
        scene.stop()


@pytest.mark.parametrize("round_number", range(ROUNDS))
@pytest.mark.parametrize("frozen", [True, False], ids=["clocks stand still", "clocks go on"])
def test_a_head_that_stood_still_acknowledges_nothing_in_a_term_that_is_over(
    running: Scene, frozen: bool, round_number: int
) -> None:
    scene = running
    epoch, leader = scene.gather(), scene.leader()
    if frozen:
        scene.clock.freeze()
    scene.master.signal(signal.SIGSTOP)
    scene.proxy.cut()
    scene.groups.wait_lists(TOPIC, [UNIT], lambda lists: all(term.group != STALE for term in lists.consume))
    scene.sender.wait_sent(1, now() + 2 * SESSION_SECONDS, OTHER)
    scene.master.signal(signal.SIGCONT)
    code, fields = scene.send(epoch, leader, 2**40)
    if frozen:
        assert (code, ORDER_EXPECTED in fields) == (ResponseCode.SYSTEM_BUSY, True), "it believes that it is the head"
        code, _ = scene.send(epoch, leader, int(fields[ORDER_EXPECTED]))
        wait_until(lambda: _slave_has_all(scene.master.ha_status()), "the slave has what the stale master stored")
    assert code not in (ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT)
    scene.clock.thaw()
    scene.proxy.heal()
    scene.load.check()


def _slave_has_all(status: Any) -> bool:
    return [one["diff"] for one in status["haConnectionInfo"]] == [0]
