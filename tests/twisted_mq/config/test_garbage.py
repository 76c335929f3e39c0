"""When a daemon looks for garbage: no look is at very many objects, and nothing is put aside for good."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import weakref

import pytest

from twisted_mq.config.garbage import (
    BUSY,
    IDLE_LOOKS,
    LEAST_GROWTH,
    LOOK_SECONDS,
    MANY,
    MOST_BLOCKS,
    THAW_SECONDS,
    GarbageLooks,
    occupied_seconds,
    wait_for_start,
)

MOST_OBJECTS = 50_000
GROWING = """
import gc, sys, time
from twisted_mq.config.garbage import COLLECT_AFTER, GarbageLooks
if sys.argv[1] == "kept":
    GarbageLooks(time.monotonic).start()
else:
    gc.collect(); gc.freeze(); gc.set_threshold(*COLLECT_AFTER[:2], 50)
looked = [0]
def look(phase, what):
    if phase == "start":
        looked.append(sum(len(gc.get_objects(generation=one)) for one in range(what["generation"] + 1)))
gc.callbacks.append(look)
held = [{"a": []} for _ in range(3_000_000)]
print(max(looked))
"""


class Collector:
    """Notes what is called in place of Python's own collector; `left` is what outlives a look, `blocks` what the process has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.now, self.left, self.blocks, self.used = 5.0, 0, 0, 0.0
        monkeypatch.setattr(gc, "callbacks", [])
        for name in ("collect", "freeze", "unfreeze", "set_threshold", "enable", "disable"):
            monkeypatch.setattr(gc, name, lambda *more, name=name: self.calls.append(name))
        self.counted: list[int] = []
        monkeypatch.setattr(gc, "get_objects", lambda generation: self.counted.append(generation) or [None] * self.left)
        self.looks = GarbageLooks(lambda: self.now, lambda: self.blocks, lambda: self.used)
        self.looks._idle_looks = IDLE_LOOKS

    def look(self, left: int, generation: int = 2) -> None:
        """Have the interpreter look, so that so many objects are left."""
        self.left = left
        for phase in ("start", "stop"):
            self.looks._looked(phase, {"generation": generation})


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    return Collector(monkeypatch)


@pytest.mark.parametrize("generation", [0, 1, 2])
@pytest.mark.parametrize(("left", "aside"), [(MANY + 1, True), (MANY, False)])
def test_many_objects_that_outlive_a_search_are_put_aside(
    collector: Collector, left: int, generation: int, aside: bool
) -> None:
    collector.look(left, generation)
    assert collector.counted == [min(generation + 1, 2)]
    assert (collector.calls, collector.looks.is_aside) == (["freeze"] if aside else [], aside)


@pytest.mark.parametrize("before", [0, 2 * LEAST_GROWTH])
def test_everything_is_looked_at_when_it_has_doubled(collector: Collector, before: int) -> None:
    collector.blocks = before
    collector.looks.start()
    enough = before + max(before, LEAST_GROWTH)
    collector.look(MANY + 1)
    for blocks, calls in ((enough, []), (enough + 1, ["unfreeze", "collect", "freeze"])):
        collector.calls.clear()
        collector.blocks = blocks
        collector.looks.look_at_all()
        assert collector.calls == calls
    collector.look(MANY + 1)
    collector.calls.clear()
    collector.looks.look_at_all()
    assert collector.calls == []


@pytest.mark.parametrize(
    ("share", "blocks", "searched"),
    [
        (BUSY, LEAST_GROWTH + 1, True),
        (BUSY + 0.1, LEAST_GROWTH + 1, False),
        (BUSY + 0.1, MOST_BLOCKS, False),
        (BUSY + 0.1, MOST_BLOCKS + 1, True),
    ],
)
def test_busy_process_searches_all_only_when_it_holds_more_than_its_budgets(
    collector: Collector, share: float, blocks: int, searched: bool
) -> None:
    """A search of all stopped a broker under siege for 3 s."""
    collector.looks.start()
    collector.look(MANY + 1)
    collector.looks.look_at_all()
    collector.calls.clear()
    collector.now += LOOK_SECONDS
    collector.used += share * LOOK_SECONDS
    collector.blocks = blocks
    collector.looks.look_at_all()
    assert collector.calls == (["unfreeze", "collect", "freeze"] if searched else [])


def test_busy_process_does_not_search_all_again_until_it_has_doubled(collector: Collector) -> None:
    collector.looks.start()
    collector.blocks = MOST_BLOCKS + 1
    for _ in range(2):
        collector.look(MANY + 1)
        collector.used += 2 * LOOK_SECONDS
        collector.now += LOOK_SECONDS
        collector.calls.clear()
        collector.looks.look_at_all()
    assert collector.calls == []


def test_process_under_a_load_that_has_just_begun_is_not_idle(collector: Collector) -> None:
    """A broker under siege searched all objects ten seconds after its start, because the siege began in between."""
    collector.looks.start()
    collector.looks.is_aside, collector.blocks = True, 3 * LEAST_GROWTH
    collector.calls.clear()
    searched = []
    for share in (2 * BUSY, *[BUSY / 2] * (IDLE_LOOKS - 1), 2 * BUSY, *[BUSY / 2] * IDLE_LOOKS):
        collector.now += LOOK_SECONDS
        collector.used += share * LOOK_SECONDS
        collector.looks.look_at_all()
        searched.append("collect" in collector.calls)
    collector.looks.stop()
    assert searched == [False] * (2 * IDLE_LOOKS) + [True]


def test_growth_without_objects_that_were_put_aside_needs_no_look(collector: Collector) -> None:
    collector.looks.start()
    collector.calls.clear()
    collector.blocks = 2 * LEAST_GROWTH
    collector.looks.look_at_all()
    assert collector.calls == []


def test_everything_is_looked_at_once_an_hour_if_something_was_put_aside(collector: Collector) -> None:
    collector.looks.start()
    collector.calls.clear()
    collector.now += THAW_SECONDS
    collector.looks.look_at_all()
    assert collector.calls == []
    collector.look(MANY + 1)
    collector.looks.look_at_all()
    collector.looks.look_at_all()
    assert collector.calls == ["freeze", "unfreeze", "collect", "freeze"]


def test_process_that_is_busy_from_its_start_on_does_not_search_all(collector: Collector) -> None:
    """The clock, which began long before, is no time of the process."""
    collector.now, collector.used = 86_400.0, 1.0
    collector.looks.start()
    collector.looks.is_aside = True
    collector.now, collector.used, collector.blocks = 86_410.0, 8.0, 3 * LEAST_GROWTH
    collector.calls.clear()
    collector.looks.look_at_all()
    collector.looks.stop()
    assert collector.calls == []


def test_start_and_stop(collector: Collector) -> None:
    wait_for_start()
    collector.looks.start()
    assert (collector.calls, len(gc.callbacks)) == (["disable", "collect", "freeze", "set_threshold", "enable"], 1)
    collector.looks.stop()
    collector.looks.stop()
    assert gc.callbacks == []


def most_looked_at(way: str) -> int:
    """The most objects of one look while a process comes to hold six million."""
    run = subprocess.run([sys.executable, "-c", GROWING, way], capture_output=True, text=True, check=True)
    return int(run.stdout)


def test_no_look_is_at_very_many_objects_however_many_there_are() -> None:
    assert 0 < most_looked_at("kept") < MOST_OBJECTS


def test_cycles_that_were_put_aside_are_freed() -> None:
    class Node:
        """Refers to itself."""

    looks = GarbageLooks(lambda: THAW_SECONDS, used=lambda: 0.0)
    freed: list[str] = []
    node = Node()
    node.itself = node  # type: ignore[attr-defined]
    weak = weakref.ref(node, lambda _: freed.append("node"))
    gc.freeze()
    looks.is_aside = True
    del node
    gc.collect()
    assert freed == []
    for _ in range(IDLE_LOOKS):
        looks.look_at_all()
    gc.unfreeze()
    assert freed == ["node"] and weak() is None


def test_process_that_waits_for_a_processor_is_not_idle(tmp_path):
    found = tmp_path / "schedstat"
    found.write_text("1500000000 2250000000 314\n")
    assert occupied_seconds(str(found)) == 3.75


@pytest.mark.parametrize("text", [None, "", "0 1", "a b c"])
def test_without_a_file_of_the_scheduler_used_time_counts(tmp_path, text):
    found = tmp_path / "schedstat"
    if text is not None:
        found.write_text(text)
    before = time.process_time()
    assert before <= occupied_seconds(str(found)) <= time.process_time()
