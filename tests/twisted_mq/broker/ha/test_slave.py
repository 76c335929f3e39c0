"""The slave's side alone: a master made by hand sends what a test says, and Apache's recorded streams are replayed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import protocol
from twisted.trial.unittest import SynchronousTestCase

from tests.support.captures import CAPTURES, HA_STREAMS, commit_log_files
from tests.support.ha import HA_PORT, RECORD_BYTES, Replica, memory_store, run, virtual_network
from twisted_mq.protocol.bodies import HAClientRuntimeInfo, HARuntimeInfo
from twisted_mq.protocol.layouts.ha import CONFIRMS_OFFSET, ConnectionState, encode_transfer_header
from twisted_mq.protocol.layouts.record import PHYSICAL_OFFSET_POSITION
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.message_store import FileMessageStore

HEARTBEAT_SECONDS = 5


@attrs.define(eq=False)
class MasterByHand(protocol.Protocol):
    """A master that records the slave's reports and sends given bytes."""

    data: bytearray = attrs.field(factory=bytearray)
    lost: bool = False

    def dataReceived(self, data: bytes) -> None:
        self.data += data

    def connectionLost(self, reason: Any = protocol.connectionDone) -> None:
        self.lost = True

    @property
    def reports(self) -> list[int]:
        return [int.from_bytes(self.data[start : start + 8], "big") for start in range(0, len(self.data), 8)]

    def send(self, offset: int, data: bytes = b"") -> None:
        self.transport.write(encode_transfer_header(offset, len(data)) + data)


class SlaveCase(SynchronousTestCase):
    """A slave that connects to the host `master`, where every connection is noted."""

    options: dict[str, Any] = {}
    split = 0.3

    def setUp(self) -> None:
        self.network = virtual_network(split=self.split)
        self.links: list[MasterByHand] = []
        self.slave = Replica(self.network, "slave", **self.options)
        source = Replica(self.network, "source")
        source.put(10)
        self.log = source.log
        self.listen()

    def listen(self) -> None:
        factory = protocol.ServerFactory.forProtocol(self._linked)
        factory.noisy = False
        self.port = self.network.host("master").listenTCP(HA_PORT, factory)

    def _linked(self) -> MasterByHand:
        self.links.append(MasterByHand())
        return self.links[-1]

    def run_for(self, seconds: float) -> None:
        run(self.network, seconds)

    def follow(self) -> MasterByHand:
        self.client = self.slave.follow("master")
        self.run_for(0.1)
        return self.links[-1]


class ReportingTests(SlaveCase):
    def test_first_report_names_the_last_record_and_the_next_one_the_end_once_that_is_compared(self) -> None:
        self.slave.store.append_log(0, self.log[:500])
        master = self.follow()
        self.assertEqual(master.reports, [306])
        self.assertIs(self.client.state, ConnectionState.TRANSFER)
        self.assertIsNone(self.client.following)
        master.send(306, self.log[306:400])
        self.run_for(0.1)
        self.assertEqual(master.reports, [306])
        master.send(400, self.log[400:])
        self.run_for(0.1)
        self.assertEqual((master.reports, self.slave.log), ([306, 500, 1020], self.log))
        self.assertIsNotNone(self.client.following)

    def test_every_append_is_reported_and_becomes_visible(self) -> None:
        master = self.follow()
        master.send(0, self.log[:500])
        self.run_for(0.1)
        master.send(500, self.log[500:])
        self.run_for(0.1)
        self.assertEqual(master.reports, [0, 500, 1020])
        self.assertEqual(self.slave.log, self.log)
        self.assertEqual(self.slave.store.max_offset_in_queue("TopicA", 0), 10)

    def test_report_is_repeated_in_silence(self) -> None:
        master = self.follow()
        for _ in range(3):
            self.run_for(HEARTBEAT_SECONDS + 0.1)
            master.send(0)
        self.assertEqual(master.reports, [0, 0, 0, 0])

    def test_slave_hands_on_to_its_own_slaves(self) -> None:
        third = Replica(self.network, "third")
        master = self.follow()
        third.follow("slave")
        self.run_for(0.1)
        master.send(0, self.log)
        self.run_for(0.1)
        self.assertEqual(third.log, self.log)

    def test_status_of_a_slave(self) -> None:
        self.follow().send(0, self.log)
        self.run_for(1)
        now = int(self.network.clock.seconds() * 1000)
        info = self.slave.ha.runtime_info()
        client = info.ha_client_runtime_info
        self.assertTrue(now - 1000 <= client.last_read_timestamp <= client.last_write_timestamp <= now)
        expected = HAClientRuntimeInfo(
            "master:10912", 1032, 1020, client.last_read_timestamp, client.last_write_timestamp, 0
        )
        self.assertEqual(info, HARuntimeInfo(master=False, ha_client_runtime_info=expected))


class EverySplitTests(SlaveCase):
    split = 0.0

    def test_stream_cut_at_every_place(self) -> None:
        stream = encode_transfer_header(0, 300) + self.log[:300] + encode_transfer_header(300, 0)
        stream += encode_transfer_header(300, 720) + self.log[300:]
        for cut in range(len(stream)):
            slave = Replica(self.network, f"slave{cut}")
            slave.follow("master")
            self.run_for(0.02)
            self.links[-1].transport.write(stream[:cut])
            self.links[-1].transport.write(stream[cut:])
            self.run_for(0.02)
            self.assertEqual(slave.log, self.log, cut)
            self.assertEqual(self.links[-1].reports[-1], 1020)
            slave.ha.stop()


class FlushTests(SlaveCase):
    options = {"flush_disk_type": "SYNC_FLUSH"}

    def test_report_waits_for_the_flush(self) -> None:
        self.slave.store = self.slave.ha.accept.store = memory_store(
            self.network.clock, hold_flushes=True, sync_flush=True
        )
        master = self.follow()
        master.send(0, self.log)
        self.run_for(0.1)
        self.assertEqual(master.reports, [0])
        self.assertEqual(self.slave.store.max_offset_in_queue("TopicA", 0), 0)
        self.slave.store.flush()
        self.run_for(0.1)
        self.assertEqual(master.reports, [0, 1020])
        self.assertEqual(self.slave.store.max_offset_in_queue("TopicA", 0), 10)

    def test_what_took_longer_to_flush_than_anybody_waits_is_reported_with_the_next_heartbeat(self) -> None:
        store = self.slave.store = self.slave.ha.accept.store = memory_store(
            self.network.clock, hold_flushes=True, sync_flush=True
        )
        self.patch(store, "when_flushed", lambda offset, callback: callback(False))
        master = self.follow()
        master.send(0, self.log)
        self.run_for(6)
        self.assertEqual(set(master.reports), {0})
        self.patch(store, "flushed_offset", store.max_physical_offset)
        self.run_for(6)
        self.assertEqual(master.reports[-1], 1020)


class ConnectingTests(SlaveCase):
    def test_pauses_grow_and_begin_anew_after_success(self) -> None:
        self.port.stopListening()
        self.client = self.slave.follow("master")
        times = []
        original = self.network.host("slave").connectTCP

        def note(*arguments: Any, **more: Any) -> Any:
            times.append(round(self.network.clock.seconds() - began))
            return original(*arguments, **more)

        began = self.network.clock.seconds()
        self.network.host("slave").connectTCP = note
        self.run_for(20)
        self.assertEqual(times, [1, 3, 8, 13, 18])
        self.listen()
        self.run_for(5)
        self.links[-1].send(0, self.log)
        self.run_for(0.1)
        self.links[-1].transport.abortConnection()
        self.run_for(1.2)
        self.assertEqual((len(self.links), self.links[-1].reports), (2, [1020 - RECORD_BYTES]))

    def test_silent_master_is_left_and_asked_again(self) -> None:
        master = self.follow()
        self.run_for(20.2)
        self.assertTrue(master.lost)
        self.run_for(1.2)
        self.assertEqual([link.lost for link in self.links], [True, False])

    def test_vanished_master_is_noticed_by_its_silence(self) -> None:
        self.follow()
        self.network.host("master").vanish()
        self.run_for(19)
        self.assertIs(self.client.state, ConnectionState.TRANSFER)
        self.run_for(2)
        self.assertIs(self.client.state, ConnectionState.READY)

    def test_new_address_moves_the_link(self) -> None:
        old = self.follow()
        other = Replica(self.network, "other")
        other.put(3)
        self.client.update_master_ha_address(f"other:{HA_PORT}")
        self.run_for(0.1)
        self.assertEqual((old.lost, self.slave.end), (True, 3 * RECORD_BYTES))
        self.client.update_master_ha_address(None)
        self.run_for(0.1)
        self.assertIs(self.client.state, ConnectionState.TRANSFER)

    def test_bad_address_is_named_and_a_good_one_taken_later(self) -> None:
        self.client = self.slave.follow("master")
        self.client.update_master_ha_address("nonsense")
        self.run_for(1)
        self.assertEqual(self.links, [])
        self.client.update_master_ha_address(f"master:{HA_PORT}")
        self.run_for(0.1)
        self.assertEqual(len(self.links), 1)

    def test_stop_leaves_no_timer_and_may_be_repeated(self) -> None:
        for when in (0.0, 0.1):
            self.client = self.slave.follow("master")
            self.run_for(when or 0.0001)
            for _ in range(2):
                self.client.stop()
            self.assertIs(self.client.state, ConnectionState.SHUTDOWN)
            self.run_for(30)
            self.assertEqual(self.network.connections("slave", "master"), 0)
        self.assertEqual(self.network.host("slave").getDelayedCalls(), [])


class MismatchTests(SlaveCase):
    def assertStopsAfterThree(self, offset: int, data: bytes) -> None:
        for _ in range(3):
            self.links[-1].send(offset, data)
            self.run_for(6)
        self.assertEqual(len(self.links), 3)
        self.assertIs(self.client.state, ConnectionState.SHUTDOWN)

    def test_bytes_from_elsewhere_are_refused_and_replication_stops(self) -> None:
        self.slave.store.append_log(0, self.log[:500])
        self.follow()
        self.assertStopsAfterThree(510, self.log[510:])
        self.assertEqual(self.slave.log, self.log[:500])

    def test_mark_from_elsewhere_counts_as_well(self) -> None:
        self.slave.store.append_log(0, self.log[:500])
        self.follow()
        self.assertStopsAfterThree(4096, b"")

    def test_garbage_is_taken_out_again(self) -> None:
        self.slave.store.append_log(0, self.log[: 2 * RECORD_BYTES])
        self.follow()
        self.assertStopsAfterThree(2 * RECORD_BYTES, b"\x55" * 300)
        self.assertEqual(self.slave.log, self.log[: 2 * RECORD_BYTES])

    def test_log_differs_from_a_mismatch_on_until_it_is_proven_to_be_the_masters(self) -> None:
        self.slave.store.append_log(0, self.log[:500])
        master = self.follow()
        self.assertFalse(self.client.differs)
        master.send(4095, b"x")
        self.run_for(2)
        self.assertTrue(self.client.differs)
        again = self.links[-1]
        again.send(306, self.log[306:400])
        self.run_for(0.1)
        self.assertTrue(self.client.differs)
        again.send(400, self.log[400:])
        self.run_for(0.1)
        self.assertEqual((self.client.differs, self.slave.log), (False, self.log))

    def test_one_damaged_transmission_is_repeated(self) -> None:
        damaged = bytearray(self.log)
        damaged[3 * RECORD_BYTES + PHYSICAL_OFFSET_POSITION] ^= 4
        self.follow().send(0, bytes(damaged))
        self.run_for(1.5)
        self.assertEqual(self.links[-1].reports, [2 * RECORD_BYTES])
        self.links[-1].send(2 * RECORD_BYTES, self.log[2 * RECORD_BYTES :])
        self.run_for(0.1)
        self.assertEqual(self.slave.log, self.log)

    def test_master_with_another_message_where_this_log_ends_is_not_followed(self) -> None:
        """The master lost its log's end, and wrote as many bytes again."""
        self.slave.store.append_log(0, self.log)
        other = bytearray(self.log)
        other[-1] ^= 1
        self.client = self.slave.follow("master")
        self.run_for(0.1)
        for turn in range(3):
            master = self.links[-1]
            self.assertEqual(set(master.reports), {9 * RECORD_BYTES})
            master.send(9 * RECORD_BYTES, bytes(other[9 * RECORD_BYTES :]) + b"more")
            self.run_for(0.1)
            self.assertEqual((master.lost, set(master.reports)), (True, {9 * RECORD_BYTES}))
            self.run_for(8)
            self.assertEqual((len(self.links), self.client.differs), (min(turn + 2, 3), True))
        self.assertIs(self.client.state, ConnectionState.SHUTDOWN)
        self.assertEqual(self.slave.log, self.log)

    def test_reports_count_in_no_session_before_the_logs_are_compared(self) -> None:
        self.slave.store.append_log(0, self.log)
        master = self.follow()
        self.client.confirm(7)
        self.run_for(0.1)
        self.assertEqual(master.reports, [9 * RECORD_BYTES])
        master.send(9 * RECORD_BYTES, self.log[9 * RECORD_BYTES :])
        self.run_for(0.1)
        self.assertEqual(master.reports, [9 * RECORD_BYTES, 10 * RECORD_BYTES, CONFIRMS_OFFSET % (1 << 64), 7])

    def test_master_whose_log_ends_before_this_one_is_told_once(self) -> None:
        self.slave.store.append_log(0, self.log)
        master = self.follow()
        master.send(9 * RECORD_BYTES, self.log[9 * RECORD_BYTES : -10])
        master.send(10 * RECORD_BYTES - 10)
        self.run_for(0.1)
        self.assertEqual(master.reports[-1], 10 * RECORD_BYTES)
        self.assertFalse(master.lost)
        master.send(10 * RECORD_BYTES - 10)
        self.run_for(0.1)
        self.assertTrue(master.lost)

    def test_announced_size_is_bounded(self) -> None:
        master = self.follow()
        master.transport.write(encode_transfer_header(0, 1 << 30))
        self.run_for(0.1)
        self.assertTrue(master.lost)
        self.run_for(1.2)
        self.assertEqual(self.links[-1].reports, [0])


class RecordedStreamTests(SlaveCase):
    """Recorded streams of Apache's master: our slave writes the same bytes as Apache's, and sends the same reports."""

    def replay(self, scenario: str) -> tuple[Replica, list[int]]:
        reports = (CAPTURES / "ha" / f"{scenario}.c2m").read_bytes()
        start = int.from_bytes(reports[:8], "big")
        recorded = next(iter(commit_log_files("ha_slave").values()))
        folder = Path(tempfile.mkdtemp(prefix="mq-test-"))
        self.addCleanup(shutil.rmtree, folder)
        config = StoreConfig(store_path_root_dir=str(folder), mapped_file_size_commit_log=len(recorded))
        store = FileMessageStore(config, lambda: 0)
        store.start()
        self.addCleanup(store.close)
        if start:
            store.append_log(0, recorded[:start])
        slave = Replica(self.network, scenario, store)
        slave.follow("master")
        self.run_for(0.1)
        asked = self.links[-1].reports[0]
        if asked < start:
            self.links[-1].send(asked, recorded[asked:start])
        self.links[-1].transport.write((CAPTURES / "ha" / f"{scenario}.m2s").read_bytes())
        self.run_for(0.2)
        self.assertEqual(bytes(slave.log), recorded[: slave.end])
        self.assertEqual(store.check(), [])
        expected = [int.from_bytes(reports[at : at + 8], "big") for at in range(0, len(reports), 8)]
        return slave, expected

    def test_recorded_streams(self) -> None:
        for scenario in HA_STREAMS:
            slave, expected = self.replay(scenario)
            self.assertEqual((scenario, slave.end), (scenario, max(expected)))
            self.assertIn(expected[0], self.links[-1].reports[:2])  # the first one asks for the last record again
            self.assertEqual(self.links[-1].reports[-1], expected[-1])
            slave.ha.stop()
