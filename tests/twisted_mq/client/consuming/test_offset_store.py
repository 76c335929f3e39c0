"""Offsets in memory, with the broker, and in a local file."""

from __future__ import annotations

import tempfile
from pathlib import Path

from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from tests.support.client_case import ClientCase
from twisted_mq.client.consuming.offset_store import LOOK_AGAIN_EACH, LocalOffsetStore, OffsetStore, RemoteOffsetStore
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError

QUEUE, OTHER = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


class InMemory(SynchronousTestCase):
    def test_offset_may_go_back_unless_told_otherwise(self) -> None:
        store = OffsetStore()
        store.update(QUEUE, 5)
        store.update(QUEUE, 3, increase_only=True)
        self.assertEqual(store.remembered(QUEUE), 5)
        store.update(QUEUE, 3)
        self.assertEqual(store.all(), {QUEUE: 3})

    def test_frozen_offset_takes_no_update_until_removed(self) -> None:
        store = OffsetStore()
        store.freeze(QUEUE, 7)
        store.update(QUEUE, 9)
        self.assertEqual(store.remembered(QUEUE), 7)
        store.remove(QUEUE)
        store.update(QUEUE, 9)
        self.assertEqual(store.remembered(QUEUE), 9)


class WithTheBroker(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 2})
        self.store = RemoteOffsetStore("g", MQClient(self.clock, **self.client_arguments()))

    def test_offset_is_read_and_remembered(self) -> None:
        self.broker.offsets[("g", "T", 0)] = 42
        self.assertEqual(self.run_to_end(self.store.read(QUEUE)), 42)
        self.assertEqual(self.store.remembered(QUEUE), 42)

    def test_group_without_an_offset_has_none(self) -> None:
        self.assertEqual(self.run_to_end(self.store.read(QUEUE)), None)
        self.assertEqual(self.store.all(), {})

    def test_failure_to_read_is_told(self) -> None:
        self.broker.refuse[RequestCode.QUERY_CONSUMER_OFFSET] = BrokerError(ResponseCode.SYSTEM_BUSY, "busy")
        self.run_to_failure(self.store.read(QUEUE), BrokerError)

    def test_offset_that_was_read_and_not_gone_beyond_is_not_committed(self) -> None:
        """A slave may have answered for its master, with less than that has."""
        self.broker.offsets[("g", "T", 0)] = 3
        self.run_to_end(self.store.read(QUEUE))
        self.broker.offsets[("g", "T", 0)] = 5
        self.run_to_end(self.store.persist([QUEUE]))
        self.assertEqual(self.broker.offsets[("g", "T", 0)], 5)
        self.store.update(QUEUE, 6)
        self.run_to_end(self.store.persist([QUEUE]))
        self.assertEqual(self.broker.offsets[("g", "T", 0)], 6)

    def test_an_offset_that_was_read_and_that_the_broker_has_lost_since_is_committed_again(self) -> None:
        key = ("g", "T", 0)
        self.broker.offsets[key] = 3
        self.run_to_end(self.store.read(QUEUE))
        del self.broker.offsets[key]
        for _ in range(LOOK_AGAIN_EACH - 1):
            self.run_to_end(self.store.persist([QUEUE, OTHER]))
        self.settle()
        self.assertEqual(self.broker.offsets, {})
        self.run_to_end(self.store.persist([QUEUE, OTHER]))
        self.settle()
        self.assertEqual(self.broker.offsets, {key: 3})
        self.broker.offsets[key] = 5
        for _ in range(LOOK_AGAIN_EACH):
            self.run_to_end(self.store.persist([QUEUE]))
        self.settle()
        self.assertEqual(self.broker.offsets, {key: 5}, "another member has committed more")

    def test_offsets_are_committed_one_way(self) -> None:
        self.store.update(QUEUE, 3)
        self.run_to_end(self.store.persist([QUEUE, OTHER]))
        self.settle()
        self.assertEqual(self.broker.offsets, {("g", "T", 0): 3})
        self.assertEqual(self.broker.headers(RequestCode.UPDATE_CONSUMER_OFFSET)[0].bname, "broker-a")

    def test_offset_that_cannot_be_committed_stays_remembered(self) -> None:
        self.cluster.kill("broker-a")
        self.store.update(QUEUE, 3)
        self.run_to_end(self.store.persist([QUEUE]))
        self.assertEqual(self.store.remembered(QUEUE), 3)


class InAFile(SynchronousTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "client" / "g" / "offsets.json"

    def store(self) -> LocalOffsetStore:
        return LocalOffsetStore(self.path, lambda work, *arguments: defer.execute(work, *arguments))

    def done(self, work):  # type: ignore[no-untyped-def]
        return self.successResultOf(defer.Deferred.fromCoroutine(work))

    def save(self, offset: int) -> None:
        store = self.store()
        store.update(QUEUE, offset)
        self.done(store.persist([QUEUE, OTHER]))

    def test_offsets_survive_in_the_form_of_apaches_client(self) -> None:
        self.save(5)
        self.assertEqual(
            self.path.read_bytes(), b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}}'
        )
        self.assertEqual(self.done(self.store().read(QUEUE)), 5)
        self.assertEqual(self.done(self.store().read(OTHER)), None)

    def test_queues_that_are_not_persisted_now_stay_in_the_file(self) -> None:
        self.save(5)
        store = self.store()
        store.update(OTHER, 6)
        self.done(store.persist([OTHER]))
        self.assertEqual([self.done(self.store().read(one)) for one in (QUEUE, OTHER)], [5, 6])

    def test_damaged_file_is_put_aside_and_the_copy_before_is_read(self) -> None:
        self.save(5)
        self.save(6)
        self.path.write_bytes(b"\x00" * 20)
        self.assertEqual(self.done(self.store().read(QUEUE)), 5)
        self.assertEqual(self.path.with_name("offsets.json.damaged").read_bytes(), b"\x00" * 20)

    def test_file_that_cannot_be_written_is_logged_and_nothing_lost(self) -> None:
        self.path.parent.parent.mkdir()
        self.path.parent.write_text("a file where the folder should be")
        store = LocalOffsetStore(
            self.path.parent / "x" / "offsets.json", lambda work, *rest: defer.execute(work, *rest)
        )
        store._stored = {}
        store.update(QUEUE, 5)
        self.done(store.persist([QUEUE]))
        self.assertEqual(store.remembered(QUEUE), 5)
