"""Masters and slaves together on a network that delays, cuts, resets and loses them."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.support.ha import RECORD_BYTES, Replica, run, virtual_network
from twisted_mq.protocol.layouts.ha import ConnectionState
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.testing.virtual_network import VirtualNetwork

LOG_FILE_BYTES = 16 * 1024


class PairCase(SynchronousTestCase):
    def make(self, seed: int = 1, **options: Any) -> None:
        self.network = virtual_network(seed)
        self.master = Replica(self.network, "master", **options)
        self.slave = Replica(self.network, "slave")
        self.slave.follow("master")

    def file_store(self) -> FileMessageStore:
        folder = Path(tempfile.mkdtemp(prefix="mq-test-"))
        self.addCleanup(shutil.rmtree, folder)
        config = StoreConfig(
            store_path_root_dir=str(folder),
            mapped_file_size_commit_log=LOG_FILE_BYTES,
            mapped_file_size_consume_queue=2000,
            commit_log_allocation_step=4096,
        )
        store = FileMessageStore(config, lambda: 1_795_217_217_000, sync=lambda descriptor: None)
        store.start()
        self.addCleanup(store.close)
        return store

    def assertEqualAfter(self, seconds: float, *slaves: Replica) -> None:
        run(self.network, seconds)
        for slave in slaves or (self.slave,):
            self.assertEqual(slave.end, self.master.end)
            self.assertTrue(slave.log == self.master.log[slave.store.min_physical_offset() :])


class LostEnds(PairCase):
    """A master that lost the end of its log in a power cut, twice: the second time it does not know of the first."""

    def master_again(self, log: bytes, later: int) -> None:
        """The master starts with this log, then takes so many messages, and starts with all of that."""
        self.master.port.stopListening()
        name = f"master{later}"
        self.master = Replica(self.network, name)
        self.master.store.append_log(0, log)
        self.slave.ha.stop()
        self.slave.follow(name)

    def test_slave_with_other_messages_up_to_the_same_end_is_not_served(self) -> None:
        self.make()
        self.master.put(10)
        self.assertEqualAfter(0.5)
        log = self.slave.log
        self.master_again(log[: 8 * RECORD_BYTES] + log[8 * RECORD_BYTES :].replace(b"hello", b"world"), 2)
        run(self.network, 20)
        self.assertEqual(self.slave.log, log)
        self.assertIs(self.slave.ha.client.state, ConnectionState.SHUTDOWN)

    def test_master_with_less_knows_that_its_slave_has_more(self) -> None:
        self.make()
        self.master.put(10)
        self.assertEqualAfter(0.5)
        log = self.slave.log
        self.master_again(log[:-RECORD_BYTES], 3)
        run(self.network, 2)
        self.assertIn("its slave's log ends at 1020", str(self.master.ha.accept.ahead))
        self.assertEqual(self.slave.log, log)


class LinkTests(PairCase):
    def test_slave_follows_what_is_appended(self) -> None:
        self.make()
        for count in (1, 10, 100):
            self.master.put(count)
            self.assertEqualAfter(0.3)
        self.assertEqual(self.slave.store.max_offset_in_queue("TopicA", 0), 111)

    def test_cut_link_heals_and_the_slave_catches_up(self) -> None:
        """Short cuts keep the connection, long ones end it at both sides."""
        self.make()
        for seconds in (3, 60):
            run(self.network, 0.3)
            self.network.cut("master", "slave")
            self.master.put(50)
            run(self.network, seconds)
            self.assertLess(self.slave.end, self.master.end)
            self.network.heal("master", "slave")
            self.assertEqualAfter(6)

    def test_waiting_send_is_answered_false_while_cut_and_true_after(self) -> None:
        self.make(broker_role="SYNC_MASTER", in_sync_replicas=2)
        run(self.network, 0.3)
        answers = [self.master.ha.replicated(self.master.put())]
        run(self.network, 0.3)
        self.network.cut("master", "slave")
        answers.append(self.master.ha.replicated(self.master.put()))
        run(self.network, 3.1)
        self.network.heal("master", "slave")
        run(self.network, 6)
        answers.append(self.master.ha.replicated(self.master.put()))
        run(self.network, 0.3)
        self.assertEqual([self.successResultOf(one) for one in answers], [True, False, True])

    def test_reset_connection_is_made_again(self) -> None:
        self.make()
        for _ in range(5):
            self.master.put(10)
            run(self.network, 0.05)
            self.network.reset("master", "slave")
        self.assertEqualAfter(6)

    def test_restarted_master_serves_on(self) -> None:
        self.make()
        self.master.put(10)
        run(self.network, 0.3)
        self.network.host("master").vanish()
        self.network.boot("master")
        again = Replica(self.network, "master", self.master.store)
        again.put(5)
        self.assertEqualAfter(6)

    def test_many_slaves_in_a_chain_and_side_by_side(self) -> None:
        self.make()
        slaves = [Replica(self.network, f"slave{number}") for number in range(12)]
        for number, slave in enumerate(slaves):
            slave.follow("master" if number < 8 else f"slave{number - 1}")
        for _ in range(20):
            self.master.put(5)
            run(self.network, 0.02)
        self.assertEqualAfter(1, self.slave, *slaves)


class FileTests(PairCase):
    def test_files_roll_on_both_sides_alike_under_every_mishap(self) -> None:
        """A random history of appends, cuts, resets, and slaves that come back with what they have."""
        for seed in range(5):
            chance = random.Random(seed)
            self.network = virtual_network(seed)
            self.master = Replica(self.network, "master", self.file_store())
            store = self.file_store()
            self.slave = Replica(self.network, "slave", store)
            self.slave.follow("master")
            for _ in range(60):
                self.append(chance)
                self.mishap(chance, store)
                run(self.network, chance.uniform(0, 0.5))
            self.network.heal("master", "slave")
            self.assertEqualAfter(12)
            self.assertGreater(self.master.end, 3 * LOG_FILE_BYTES)
            self.assertEqual(store.check(), [])
            self.assertEqual(offsets(store), offsets(self.master.store))
            self.assertTrue(self.slave.log)
            for replica in (self.slave, self.master):
                replica.ha.stop()

    def append(self, chance: random.Random) -> None:
        for _ in range(chance.randrange(12)):
            body = chance.randbytes(chance.randrange(1, 900))
            self.master.store.put_message(InnerMessage("TopicA", chance.randrange(3), body, b"", {}, 0))
        self.master.dispatch()

    def mishap(self, chance: random.Random, store: FileMessageStore) -> None:
        what = chance.randrange(8)
        if what == 0:
            self.network.cut("master", "slave")
        elif what == 1:
            self.network.heal("master", "slave")
        elif what == 2:
            self.network.reset("master", "slave")
        elif what == 3:
            self.slave.ha.stop()
            self.slave.port.stopListening()
            store.close()
            store.start()
            self.slave = Replica(self.network, "slave", store)
            self.slave.follow("master")

    def test_empty_slave_begins_with_the_newest_file(self) -> None:
        self.network = virtual_network(5)
        self.master = Replica(self.network, "master", self.file_store())
        self.master.put(60, b"x" * 1000)
        start = self.master.store.newest_file_offset()
        self.slave = Replica(self.network, "slave", self.file_store())
        self.slave.follow("master")
        run(self.network, 0.5)
        self.assertEqual((self.slave.store.min_physical_offset(), self.slave.end), (start, self.master.end))
        self.assertEqual(self.slave.log, self.master.log[start:])
        for replica in (self.slave, self.master):
            replica.ha.stop()

    def test_slave_of_another_file_size_stops_and_keeps_what_is_right(self) -> None:
        self.network = virtual_network(6)
        self.master = Replica(self.network, "master", self.file_store())
        folder = tempfile.mkdtemp(prefix="mq-test-")
        self.addCleanup(shutil.rmtree, folder)
        store = FileMessageStore(
            StoreConfig(store_path_root_dir=folder, mapped_file_size_commit_log=4 * LOG_FILE_BYTES), lambda: 0
        )
        store.start()
        self.addCleanup(store.close)
        self.slave = Replica(self.network, "slave", store)
        client = self.slave.follow("master")
        run(self.network, 0.2)
        self.master.put(20, b"x" * 1000)
        run(self.network, 30)
        self.assertEqual(client.state.name, "SHUTDOWN")
        self.assertEqual(self.slave.log, self.master.log[: self.slave.end])
        self.master.ha.stop()


def offsets(store: Any) -> dict[tuple[str, int], int]:
    return {
        (topic, queue_id): store.max_offset_in_queue(topic, queue_id)
        for topic in store.topics()
        for queue_id in store.queue_ids(topic)
    }


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 20)),
        st.tuples(st.just("run"), st.integers(1, 30)),
        st.tuples(st.just("cut"), st.just(0)),
        st.tuples(st.just("heal"), st.just(0)),
        st.tuples(st.just("reset"), st.just(0)),
    ),
    max_size=25,
)


def step(network: VirtualNetwork, master: Replica, what: str, number: int) -> None:
    if what == "put":
        master.put(number)
    elif what == "run":
        run(network, number / 10)
    else:
        getattr(network, what)("master", "slave")


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 1000))
def test_acknowledged_offsets_never_pass_what_the_slave_holds(steps: list[tuple[str, int]], seed: int) -> None:
    """Whatever happens: ack <= slave's end <= what was sent <= master's end, the slave's log is the master's beginning."""
    network = virtual_network(seed)
    master, slave = Replica(network, "master"), Replica(network, "slave")
    slave.follow("master")
    for what, number in steps:
        step(network, master, what, number)
        for connection in master.ha.accept.connections:
            assert connection.slave_ack_offset <= slave.end
            assert connection.transfer_from_where <= master.end
        assert slave.end <= master.end
        assert master.log.startswith(slave.log)
    network.heal("master", "slave")
    run(network, 30, 0.05)
    assert slave.log == master.log
