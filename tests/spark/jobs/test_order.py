"""The proof of order as a Spark job says the same as `mq order audit`, on planted stores."""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.ordered_stores import OrderedStores
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.jobs import order, stretches
from twisted_mq.storage.tools.order_audit import MEANINGS, OrderAudit, audit_order
from twisted_mq.storage.tools.order_marks import read_marks

WHOLE_QUEUES = 1 << 18


def numbered(session: SparkSession, stores: list[str]) -> DataFrame:
    opened = Stores.opened(session, stores)
    return order.numbered(opened.messages(order.COLUMNS), [store.name for store in opened.ends])


def judged(session: SparkSession, stores: list[str]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Rows of terms and of faults."""
    messages = numbered(session, stores).cache()
    terms, faults = (sorted(map(tuple, job(messages).collect()), key=repr) for job in (order.terms, order.faults))
    messages.unpersist()
    return terms, faults


def expected(audit: OrderAudit, stores: list[str]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    terms = [attrs.astuple(term, filter=lambda field, _: field.name != "stores") for term in audit.terms]
    faults = [attrs.astuple(attrs.evolve(fault, store=stores.index(fault.store))) for fault in audit.faults]
    return sorted(terms, key=repr), sorted(faults, key=repr)


@pytest.mark.parametrize("offsets", [WHOLE_QUEUES, 2])
def test_a_sound_queue_and_each_planted_fault(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offsets: int
) -> None:
    monkeypatch.setattr(stretches, "STRETCH_OFFSETS", offsets)
    stores = OrderedStores(tmp_path)
    stores.send("a", 1, 0, range(1, 6), topic="Sound")
    stores.send("b", 2, 0, range(4, 9), base=4, topic="Sound")
    stores.send("a", 3, 4, range(1, 3), topic="Sound")
    stores.send("a", 1, 0, [1, 2, 5], topic="Gap")
    stores.send("b", 2, 0, [9, 10], base=9, topic="Gap")
    stores.send("a", 1, 0, [1, 3, 2, 4], topic="Swap")
    stores.send("b", 2, 0, [4, 3, 5], base=3, topic="Swap")
    stores.send("a", 1, 0, [1, 2, 2, 3], topic="Repeat", queue=2)
    stores.send("a", 2, 5, [1, 2], topic="Stale")
    stores.send("a", 2, 4, [1], topic="Stale")
    stores.send("b", 4, 6, [1], topic="Stale")
    stores.send("b", 3, 5, [3], topic="Stale")
    stores.send("a", 1, 0, [1, 2], topic="Fork")
    stores.send("b", 1, 0, [1, 3], topic="Fork")
    stores.put("a", {"ORDERED": "1:0"}, topic="Plain", queue_offset=7)
    stores.put("a", {"ORDERED": "1:0"}, topic="Plain", queue_offset=9)
    for text in ("1:3:0:1:2", "1:0:0:3:2", "1:0:0:1:2\n", "01:0:0:1:2"):
        stores.put("a", {"ORDERED": text}, topic="Plain")
    stores.copy("a", "a-slave")
    paths = stores.write()
    audit = audit_order(read_marks(paths))
    kinds = {(fault.topic, fault.kind) for fault in audit.faults}
    assert kinds == {
        ("Fork", "fork"),
        ("Gap", "gap"),
        ("Plain", "gap"),
        ("Plain", "unmarked"),
        ("Repeat", "repeat"),
        ("Stale", "stale"),
        ("Swap", "swap"),
    }
    assert judged(session, paths) == expected(audit, paths)


def test_random_stores(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "STRETCH_OFFSETS", 3)
    random_numbers = random.Random(7)
    stores = OrderedStores(tmp_path)
    for topic in range(40):
        for _ in range(random_numbers.randint(1, 5)):
            first = random_numbers.randint(1, 6)
            sequences = [first + step + random_numbers.choice((0, 0, 0, 0, -1, 1)) for step in range(4)]
            epoch, leader = random_numbers.randint(1, 4), random_numbers.randint(0, 2)
            group = random_numbers.choice("ab")
            stores.send(group, epoch, leader, map(abs, sequences), base=first, topic=f"T{topic}")
    paths = stores.write()
    audit = audit_order(read_marks(paths))
    assert {fault.kind for fault in audit.faults} == set(MEANINGS)
    assert judged(session, paths) == expected(audit, paths)


def test_one_long_queue_is_many_tasks_and_faults_at_their_borders_are_found(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sequences = [*range(1, 97)]
    sequences[7:9] = [9, 8]  # swapped across the border of two stretches of eight
    sequences[16] = 16  # again behind the border, in place of 17
    del sequences[40:56]  # two whole stretches are missing
    planted = OrderedStores(tmp_path)
    planted.send("a", 1, 0, sequences)
    planted.send("a", 3, 2, range(1, 25))
    planted.send("a", 2, 1, [1])  # of an older epoch and leader, two stretches behind the newer ones' first
    planted.put("a", {})
    paths = planted.write()
    monkeypatch.setattr(stretches, "STRETCH_OFFSETS", 8)
    session.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        tasks = order.judged(numbered(session, paths)).groupBy(F.spark_partition_id()).count().collect()
        assert len(tasks) == 2 and min(task["count"] for task in tasks) > 0
        audit = audit_order(read_marks(paths))
        found = judged(session, paths)
    finally:
        session.conf.unset("spark.sql.adaptive.enabled")
    assert {fault.kind for fault in audit.faults} == {"gap", "repeat", "stale", "swap", "unmarked"}
    assert found == expected(audit, paths)
