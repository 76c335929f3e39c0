"""Counts of messages: those of a read, from few bytes where the queues are counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from tests.spark.columns.test_inner_batches import store as store_with_batches
from tests.spark.read_counts import ReadCounts
from tests.spark.source.test_queue_reads import mixed
from tests.spark.stores import StoreWriter
from twisted_mq.protocol.layouts.queue_entry import BATCH_QUEUE_ENTRY, FILLER_ENTRY
from twisted_mq.spark.errors import DamagedLog, DataLost
from twisted_mq.spark.source.count_source import CountReader, CountSource
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader

QUEUES = {"through": "queues"}


def reader(path: str, **options: str) -> CountReader:
    source = CountSource({"path": path, **options})
    source.schema()
    found = source.reader(StructType())
    assert isinstance(found, CountReader)
    return found


def counted(path: str, **options: str) -> int:
    counting = reader(path, **options)
    batches = [batch for split in counting.partitions() for batch in counting.read(split)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert {row["store"] for row in rows} <= {path}
    return sum(row["messages"] for row in rows)


def read(path: str, **options: str) -> int:
    whole = StoreReader(read_options({"path": path, **options}), ("flag",))
    return sum(batch.num_rows for split in whole.partitions() for batch in whole.read(split))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of 4,000 messages in several log files, 40 of them of the topic "Small"."""
    return mixed(tmp_path_factory.mktemp("counted") / "store").write()


@pytest.mark.parametrize("through", ["log", "queues"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"topicPattern": ".*"}, 4000),
        ({"topic": "Small"}, 40),
        ({"topicPattern": "S.*|Large1", "queueId": "1,2"}, 681),
        ({"topic": "Small", "tags": "b"}, 20),
        ({"topicPattern": ".*", "startTime": "1795216735970", "endTime": "1795216736970"}, 1000),
        ({"topicPattern": ".*", "startOffset": "100000", "endOffset": "300001"}, 751),
        ({"topic": "None"}, 0),
    ],
    ids=str,
)
def test_counts_are_those_of_a_read(large: str, through: str, options: dict[str, str], expected: int) -> None:
    given = {**options, "through": through, "maxPartitionBytes": "32k"}
    assert counted(large, **given) == read(large, **given) == expected


def test_queues_are_counted_without_the_log(large: str, read_counts: ReadCounts) -> None:
    """Without a topic every queue is counted."""
    assert counted(large, **QUEUES) == 4000
    assert 0 < read_counts.of("commitlog") < read_counts.end_search
    ends = read_counts.take().total
    assert counted(large) == 4000
    assert read_counts.total > 700_000 + ends


def test_what_is_not_dispatched_yet_is_counted_in_the_log(tmp_path: Path) -> None:
    writer = mixed(tmp_path / "store", 1000)
    writer.write()
    for _ in range(7):
        writer.append("Late")
    assert counted(writer.write(queues=False), **QUEUES) == 1007


def test_fillers_and_entries_outside_of_the_log_are_not_counted(writer: StoreWriter) -> None:
    for _ in range(400):
        writer.append(body=b"x" * 400)
    path = Path(writer.write())
    queue = path / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    entries = bytearray(queue.read_bytes())
    entries[:20] = FILLER_ENTRY
    queue.write_bytes(entries)
    assert counted(str(path), **QUEUES) == 399
    first, *rest = sorted((path / "commitlog").iterdir())
    first.unlink()
    kept = sum(position >= int(rest[0].name) for position in writer.positions)
    assert counted(str(path), **QUEUES) == counted(str(path)) == kept > 200


def test_a_batch_queue_tells_the_number_of_messages(tmp_path: Path) -> None:
    path = store_with_batches(tmp_path)
    plain = tmp_path / "consumequeue" / "Batches" / "0" / f"{0:020d}"
    entries = [plain.read_bytes()[20 * number : 20 * number + 20] for number in range(4)]
    plain.unlink()
    batch = tmp_path / "batchconsumequeue" / "Batches" / "0" / plain.name
    batch.parent.mkdir(parents=True)
    written = [BATCH_QUEUE_ENTRY.parse(entry + bytes(26)) for entry in entries]
    for entry, messages in zip(written, (1, 2, 1, 1), strict=True):
        entry.batch_num = messages
    batch.write_bytes(b"".join(map(BATCH_QUEUE_ENTRY.build, written)))
    assert counted(path) == counted(path, **QUEUES) == read(path) == 6
    assert counted(path, topic="Batches", tags="A") == read(path, topic="Batches", tags="A") == 1


def test_damage_is_found_where_the_log_is_counted(writer: StoreWriter) -> None:
    for _ in range(3):
        writer.append()
    writer.overwrite(writer.positions[1], b"\xee" * 8)
    path = writer.write()
    assert (counted(path), counted(path, **QUEUES)) == (2, 3)
    with pytest.raises(DamagedLog, match="damaged bytes at physical offset"):
        counted(path, failOnDamage="true")


def test_a_queue_that_is_deleted_after_planning_is_a_loss(writer: StoreWriter) -> None:
    for topic in ("Bills", "Orders"):
        writer.append(topic)
    path = writer.write()
    for options, expected in (({}, None), ({"failOnDataLoss": "false"}, 1)):
        writer.write()
        counting = reader(path, **QUEUES, **options)
        splits = counting.partitions()
        Path(path, "consumequeue", "Bills", "0", f"{0:020d}").unlink()
        if expected is None:
            with pytest.raises(DataLost, match="was deleted since the read was planned"):
                [list(counting.read(split)) for split in splits]
        else:
            batches = [batch for split in splits for batch in counting.read(split)]
            assert sum(row["messages"] for batch in batches for row in batch.to_pylist()) == expected


@pytest.mark.parametrize("options", [{}, QUEUES], ids=["log", "queues"])
def test_a_task_counts_several_parts(large: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert len(reader(large, **options).partitions()) == 2
    assert len(reader(large, minPartitions="3", **options).partitions()) == 3


def test_parts_of_the_log_are_joined_by_eight(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    parts = StoreReader(read_options({"path": large, "maxPartitionBytes": "16k"}), ()).partitions()
    tasks = reader(large, maxPartitionBytes="16k").partitions()
    assert len(parts) == 62
    assert [len(task.splits) for task in tasks] == [1] * 8  # a cut costs a search
