"""A broker whose disk is full, turns read-only or fails: the codes clients get, and what is there when it ends."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.support.broker import BrokerInMemory
from tests.support.faulty_disk import FaultyDisk
from tests.support.store_load import START_MS, small_config
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.requests.registry import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.errors import StoreError
from twisted_mq.storage.flushing.flush import FlushService
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.tables.config_tables import TopicTable

FLUSH_DISK_TIMEOUT = 10
SERVICE_NOT_AVAILABLE = 14
FIELDS = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0",
          "i": "UNIQ_KEY\x01KEY0\x02", "j": "0", "k": "false", "m": "false"}  # fmt: skip
LARGE = 3000


class Broker:
    """A broker in memory over files; the flush thread's turns are taken by hand."""

    def __init__(self, root: Path, disk: FaultyDisk) -> None:
        self.sent: list[bytes] = []
        self.store = FileMessageStore(small_config(root), lambda: START_MS, allocate=disk.allocate, sync=disk.sync)
        self.broker = BrokerInMemory(store=self.store, flush_disk_type="SYNC_FLUSH")
        self.peer = self.broker.connect()

    def send(self, size: int = 100) -> int:
        """Send one message; the answer's code. What was answered with success is kept in `sent`."""
        body = len(self.sent).to_bytes(4, "big") + bytes(size)
        self.peer.send(
            RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=body, language="JAVA", ext_fields=dict(FIELDS))
        )
        assert self.store._flush is not None
        self.store._flush.turn()
        self.broker.controller.dispatch()
        (answer,) = self.peer.received()
        if answer.code == 0:
            self.sent.append(body)
        return answer.code

    def bodies(self) -> list[bytes]:
        found: list[bytes] = []
        while len(found) < self.store.max_offset_in_queue("T", 0):
            records = self.store.get_message("T", 0, len(found), 32, 1 << 20, None).records
            found += [decode_message(record).body for record in records]
        return found


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultyDisk:
    monkeypatch.setattr(FlushService, "start", lambda self: None)
    return FaultyDisk(tmp_path / "store", monkeypatch)


@pytest.fixture
def broker(tmp_path: Path, disk: FaultyDisk) -> Broker:
    made = Broker(tmp_path / "store", disk)
    assert [made.send() for _ in range(5)] == [0] * 5
    return made


@pytest.mark.parametrize("fault", [FaultyDisk.fill, FaultyDisk.make_read_only])
def test_sends_are_refused_until_the_disk_takes_data_again(broker: Broker, disk: FaultyDisk, fault: object) -> None:
    assert callable(fault)
    fault(disk)
    codes = {broker.send(LARGE) for _ in range(30)}
    assert codes - {0} == {SERVICE_NOT_AVAILABLE}
    assert broker.send(LARGE) == SERVICE_NOT_AVAILABLE
    assert broker.bodies() == broker.sent
    assert broker.store.check() == []
    disk.heal()
    assert [broker.send(LARGE) for _ in range(30)] == [0] * 30
    assert broker.bodies() == broker.sent
    broker.store.close()
    broker.store.start()
    assert (broker.bodies(), broker.store.check()) == (broker.sent, [])
    broker.store.close()


def test_old_files_are_read_on_a_disk_that_turned_read_only(broker: Broker, disk: FaultyDisk) -> None:
    assert [broker.send(LARGE) for _ in range(20)] == [0] * 20
    for file in broker.store._log.files.files[:-1]:
        file.release()
    disk.make_read_only()
    assert broker.bodies() == broker.sent


def test_failed_flush_is_no_success_and_the_last_word(broker: Broker, disk: FaultyDisk, tmp_path: Path) -> None:
    disk.syncing = errno.EIO
    assert broker.send() == FLUSH_DISK_TIMEOUT
    assert broker.send() == SERVICE_NOT_AVAILABLE
    disk.heal()
    assert broker.send() == SERVICE_NOT_AVAILABLE
    assert broker.bodies() == broker.sent
    with pytest.raises(OSError, match="Input/output error"):
        broker.store.close()
    broker.store.start()
    assert not broker.store.recovery_report.clean
    assert broker.bodies()[: len(broker.sent)] == broker.sent
    assert broker.store.check() == []
    broker.store.close()


@pytest.mark.parametrize("kind", ["making", "opening"])
@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_a_start_that_fails_says_why_and_can_be_repeated(
    broker: Broker, disk: FaultyDisk, kind: str, code: int
) -> None:
    broker.store.close()
    setattr(disk, kind, code)
    with pytest.raises(StoreError):
        broker.store.start()
    disk.heal()
    broker.store.start()
    assert broker.bodies() == broker.sent
    broker.store.close()


@pytest.mark.parametrize("kind", ["making", "opening", "syncing"])
def test_a_table_that_cannot_be_saved_stays_as_it_was(disk: FaultyDisk, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "store" / "config" / "topics.json"
    table = TopicTable(str(path))
    table.save()
    before = path.read_bytes()
    table.topics["T"] = TopicConfig("T", 4, 4)
    setattr(disk, kind, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        table.save()
    assert path.read_bytes() == before
    disk.heal()
    assert table.save()
    assert TopicTable(str(path)).load() == []
