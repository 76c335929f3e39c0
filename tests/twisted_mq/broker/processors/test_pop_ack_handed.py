"""Acknowledgements of one pop that this process's own proxy hands over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.pop import PopDesk, bodies, messages
from twisted_mq.broker.processors.pop_ack_handed import NONE_REFUSED, HandedAcks
from twisted_mq.protocol.codes import RequestCode, ResponseCode


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    desk = PopDesk(tmp_path, metrics_exporter_type="PROM")
    desk.send("a", "b", "c")
    return desk


def popped(desk: PopDesk) -> int:
    """Pop all messages. Returns when that was."""
    return int(messages(desk.pop(queueId=0))[0].properties["POP_CK"].split()[1])


def take(desk: PopDesk, pop_time: int, *queue_offsets: int) -> Mapping[int, str]:
    return HandedAcks(desk.controller).take("T", "G", 0, 0, pop_time, 10_000, 0, queue_offsets)


def counted(desk: PopDesk) -> dict[int, tuple[int, float]]:
    """The number of acknowledgements by the code of their answer, and the milliseconds that they took."""
    times = desk.controller.statistics.request_times
    assert times is not None
    return {
        key[1]: (sum(one.counts), one.total) for key, one in times.times.items() if key[0] == RequestCode.ACK_MESSAGE
    }


@pytest.mark.parametrize(("queue_offsets", "left"), [((1,), ["a", "c"]), ((0, 2), ["b"])], ids=["one", "some"])
def test_acknowledged_messages_do_not_come_back(desk: PopDesk, queue_offsets: tuple[int, ...], left: list[str]) -> None:
    assert take(desk, popped(desk), *queue_offsets) is NONE_REFUSED
    assert counted(desk) == {ResponseCode.SUCCESS: (len(queue_offsets), 0)}
    desk.pass_time(16)
    assert bodies(desk.pop()) == left


def test_acknowledgements_that_are_not_stored_are_refused_each(desk: PopDesk) -> None:
    pop_time = popped(desk)
    desk.broker.options.timer_wheel_enable = False
    remark = "the acknowledgement was not stored, acknowledge again: topic=T queue=0 offset="
    assert take(desk, pop_time, 0, 2) == {0: f"{remark}0", 2: f"{remark}2"}
    assert counted(desk) == {ResponseCode.SYSTEM_ERROR: (2, 0)}


@pytest.mark.parametrize(
    ("topic", "queue_id", "queue_offset", "revive_queue_id", "taken"),
    [
        ("T", 0, 0, 0, True), ("T", 0, 3, 0, True), ("T", 3, 0, 0, True), ("U", 0, 0, 0, False),
        ("T", -1, 0, 0, False), ("T", 4, 0, 0, False), ("T", 0, -1, 0, False), ("T", 0, 4, 0, False),
        ("T", 0, 0, -1, False), ("T", 0, 0, 1, False),
    ],
)  # fmt: skip
def test_places_that_the_broker_does_not_have_are_left_to_the_processor_of_requests(
    desk: PopDesk, topic: str, queue_id: int, queue_offset: int, revive_queue_id: int, taken: bool
) -> None:
    """Offset 3 is that of the next message."""
    assert HandedAcks(desk.controller).may_take(topic, queue_id, queue_offset, revive_queue_id) is taken
