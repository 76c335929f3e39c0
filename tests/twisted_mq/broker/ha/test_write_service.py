"""Writing to slaves: after much in one poll, further slaves wait for turns of their shares."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.ha.flow_monitor import UNLIMITED, FlowMonitor
from twisted_mq.broker.ha.write_service import WriteSocketService
from twisted_mq.protocol.layouts.ha import HEADER_BYTES
from twisted_mq.remoting.rotation import CROWD_SECONDS, Rotation
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.memory.memory_store import MemoryMessageStore


class Log(MemoryMessageStore):
    """A log of a thousand bytes, of which `on_disk` are on disk."""

    on_disk = 1000

    def flushed_offset(self) -> int:
        return self.on_disk

    def read_log(self, offset: int, size: int) -> bytes:
        return bytes(1000)[offset : offset + size]


class WriteServiceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.rotation = Rotation(self.clock)
        self.log = Log(StoreConfig(store_path_root_dir="/nowhere"), lambda: 0)
        self.make()

    def make(self, *, on_disk_only: bool = False) -> None:
        self.transport = StringTransport()
        self.writer = WriteSocketService(
            self.log, self.clock, FlowMonitor(self.clock, UNLIMITED),
            self.rotation,
            batch_bytes=32 * 1024, heartbeat_seconds=5.0, on_disk_only=on_disk_only,
        )  # fmt: skip
        self.writer.start(self.transport, "192.0.2.1")
        self.writer.pauseProducing()
        self.writer.begin(0)
        self.assertEqual(self.transport.value(), b"")

    def in_a_crowd(self) -> None:
        self.clock.rightNow += 1.0
        self.assertFalse(self.rotation.is_crowded(self.clock.seconds()))
        self.clock.rightNow += CROWD_SECONDS

    def test_a_slave_that_reads_again_is_sent_more_at_once(self) -> None:
        self.writer.resumeProducing()
        self.assertEqual(len(self.transport.value()), HEADER_BYTES + 1000)

    def test_what_is_not_on_disk_is_sent_when_it_is_where_no_send_waits_for_that(self) -> None:
        self.make(on_disk_only=True)
        self.log.on_disk = 300
        self.writer.resumeProducing()
        self.assertEqual((len(self.transport.value()), self.writer.next_offset), (HEADER_BYTES + 300, 300))
        self.writer.pump()
        self.assertEqual(self.writer.next_offset, 300)
        self.log.on_disk = 1000
        self.writer.pump()
        self.assertEqual((len(self.transport.value()), self.writer.next_offset), (2 * HEADER_BYTES + 1000, 1000))

    def test_after_much_work_in_a_poll_it_waits_for_its_turn(self) -> None:
        self.in_a_crowd()
        self.writer.resumeProducing()
        self.assertEqual(self.transport.value(), b"")
        self.clock.advance(0)
        self.assertEqual(len(self.transport.value()), HEADER_BYTES + 1000)

    def test_a_link_whose_work_fails_in_its_turn_is_closed(self) -> None:
        self.in_a_crowd()
        self.writer.resumeProducing()
        self.log.read_log = self.fails  # type: ignore[method-assign]
        self.clock.advance(0)
        self.assertTrue(self.transport.disconnected)
        self.assertEqual(len(self.flushLoggedErrors(MemoryError)), 1)

    @staticmethod
    def fails(offset: int, size: int) -> bytes:
        raise MemoryError

    def test_a_slave_that_is_gone_has_no_turn(self) -> None:
        self.in_a_crowd()
        self.writer.resumeProducing()
        self.writer.stop()
        self.clock.advance(0)
        self.assertEqual((self.transport.value(), self.clock.getDelayedCalls()), (b"", []))
