"""Audits of recorded stores, as they are and with planted faults, beside what `mq store verify` and `mq order audit` say."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from pyspark.sql import SparkSession

from tests.storage.conftest import OpenFileStore
from tests.storage.queues.test_batch_consume_queue import batch_store
from tests.storage.test_batch_queue_contract import TOPIC
from tests.support.ordered_stores import OrderedStores
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES, pack_entry
from twisted_mq.spark.commands.checks import audit, order, replicas
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.findings.findings import Findings
from twisted_mq.storage.tools.findings import INDEX, QUEUE
from twisted_mq.storage.tools.verify import verify

ENTRY_BYTES = 20


def totals(findings: Findings) -> dict[str, int]:
    return {table.name: table.total for table in findings.tables}


def test_a_sound_store_says_what_verify_says(session: SparkSession, captured: Callable[[str], str]) -> None:
    found = audit(Stores.opened(session, [captured("st")]), 50, None)
    said = verify(captured("st"))
    assert said.sound and found.sound
    figures = [one.value for one in found.figures]
    assert figures[:4] == [said.messages, said.message_bytes, said.entries, said.index_entries]


def test_planted_faults_are_those_of_verify(
    session: SparkSession, captured: Callable[[str], str], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(captured("st"), store)
    queue = store / "consumequeue" / "CapMany" / "0" / f"{400:020d}"
    entries = bytearray(queue.read_bytes())
    entries[ENTRY_BYTES : 2 * ENTRY_BYTES] = pack_entry(0, 17, 0)  # leads into another topic's record
    queue.write_bytes(entries)
    last = sorted((store / "consumequeue" / "CapOrder" / "0").iterdir())[-1]
    entries = bytearray(last.read_bytes())
    used = len(bytes(entries).rstrip(b"\0")) + ENTRY_BYTES - 1
    begin = used - used % ENTRY_BYTES - ENTRY_BYTES
    entries[begin : begin + ENTRY_BYTES] = bytes(ENTRY_BYTES)  # the last record of the queue has no entry
    last.write_bytes(entries)
    index = sorted((store / "index").iterdir())[0]
    data = bytearray(index.read_bytes())
    data[40 + 40 * 4 + 3 * ENTRY_BYTES + 3] ^= 1  # another hash in the third entry
    index.write_bytes(data)
    found = audit(Stores.opened(session, [str(store)]), 50, None)
    said = Counter[str]()
    for finding in verify(str(store)).findings:
        said[finding.part] += finding.count
    kinds = Counter(row[-1] for table in found.tables for row in table.rows)
    assert kinds == {"leads elsewhere": 1, "no entry": 1, "not indexed": 1, "no such key": 1}
    assert totals(found)["Queues"] == said[QUEUE]
    assert (totals(found)["Index"] > 0) == (said[INDEX] > 0)
    assert not found.sound


def test_batch_queues_are_audited(session: SparkSession, open_store: OpenFileStore, tmp_path: Path) -> None:
    batch_store(open_store, tmp_path / "store").close()
    store, said = str(tmp_path / "store"), verify(str(tmp_path / "store"))
    found = audit(Stores.opened(session, [store]), 50, None)
    assert said.sound and found.sound
    assert [one.value for one in found.figures][:3] == [said.messages, said.message_bytes, said.entries]
    path = tmp_path / "store" / "batchconsumequeue" / TOPIC / "0" / f"{0:020d}"
    entries = bytearray(path.read_bytes())
    entries[37] ^= 1  # how many messages the first entry's batch has
    entries[2 * BATCH_ENTRY_BYTES + 7] ^= 1  # the place of the third entry's record
    entries[3 * BATCH_ENTRY_BYTES + 35] ^= 64  # the queue offset of the fourth
    path.write_bytes(entries)
    (queues,) = (table for table in audit(Stores.opened(session, [store]), 50, None).tables if table.name == "Queues")
    assert [(row[1], row[3], row[5]) for row in queues.rows] == [
        (TOPIC, 0, "leads elsewhere"),
        (TOPIC, 4, "leads elsewhere"),
        (TOPIC, 7, "no entry"),
        (TOPIC, 71, "no record"),
    ]


def test_a_slave_with_another_record(session: SparkSession, captured: Callable[[str], str], tmp_path: Path) -> None:
    copy = tmp_path / "slave"
    shutil.copytree(captured("ha_slave"), copy)
    log = sorted((copy / "commitlog").iterdir())[0]
    data = bytearray(log.read_bytes())
    data[16] ^= 1  # the flag of the first record
    log.write_bytes(data)
    master, sound, odd = (
        Stores.opened(session, [path]) for path in (captured("ha_master"), captured("ha_slave"), str(copy))
    )
    assert replicas(master, sound, 50).total == 0
    assert [(row[0], row[-1]) for row in replicas(master, odd, 50).rows] == [(0, "different")]
    with pytest.raises(WrongOption, match="one store is compared with one slave"):
        audit(Stores.opened(session, [str(copy), captured("ha_master")]), 50, master)


def test_what_is_written_after_the_begin_is_no_fault(session: SparkSession, captured: Callable[[str], str]) -> None:
    stores = Stores.opened(session, [captured("st")])
    places = [row.physicalOffset for row in stores.messages(["physicalOffset"]).collect()]
    earlier = attrs.evolve(stores, ends=dict.fromkeys(stores.ends, sorted(places)[len(places) // 2]))
    found = audit(earlier, 50, None)
    assert found.sound
    assert found.figures[0].value == len([place for place in places if place < next(iter(earlier.ends.values()))])


def test_the_order_of_queues(session: SparkSession, tmp_path: Path, captured: Callable[[str], str]) -> None:
    planted = OrderedStores(tmp_path)
    planted.send("a", 1, 0, [1, 2, 5])
    planted.send("b", 2, 0, [6], base=6)
    found = order(Stores.opened(session, planted.write()), 50)
    assert [one.value for one in found.figures] == [1, 1]
    (faults,) = (table for table in found.tables if table.name == "Faults")
    names = list(faults.kinds)
    assert [(row[names.index("kind")], row[names.index("first")], row[names.index("last")]) for row in faults.rows] == [
        ("gap", 3, 4)
    ]
    assert {row[names.index("store")] for row in faults.rows} == {str(tmp_path / "a")}
    assert not found.sound
    assert totals(order(Stores.opened(session, [captured("st")]), 50)) == {"Terms": 0, "Faults": 0}
