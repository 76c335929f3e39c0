"""Registration with name servers over connections in memory: one down, one silent, one that refuses, on a virtual clock."""

from __future__ import annotations

import gc
import struct
import zlib
from collections.abc import Callable
from typing import Any

from twisted.internet import defer, protocol
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import MemoryTable
from tests.support.remoting import MemoryNetwork, settle
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.registration import ENCODED_AT_ONCE, Registration
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    decode_register_broker,
    encode_register_broker,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.registration_proof import is_proven
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic

MALFORMED = -1
FIRST, SECOND = "10.0.0.1:9876", "10.0.0.2:9876"


class NameServer:
    """Notes what it is asked; answers with `code`, or not at all where that is None."""

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self.asked: list[RemotingCommand] = []
        self.code: int | None = 0
        self._network, self._address = network, address
        self.listen()

    def listen(self) -> None:
        traffic = Traffic({103: self.answer, 104: self.answer}, self._network.clock)
        self._network.listen(self._address, protocol.Factory.forProtocol(lambda: SocketChannel(traffic)))

    def answer(self, channel: SocketChannel, command: RemotingCommand) -> RemotingCommand | bytes | None:
        self.asked.append(command)
        if self.code is None:
            return None
        if self.code == MALFORMED:
            head = b'{"code":0,"flag":1,"opaque":%d,"extFields":[7]}' % command.opaque
            return struct.pack(">II", len(head) + 4, len(head)) + head
        return command.answer(self.code, "no" if self.code else None, {"haServerAddr": "h", "masterAddr": "m"})


class RegistrationTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.network = MemoryNetwork(self.clock)
        self.first, self.second = NameServer(self.network, FIRST), NameServer(self.network, SECOND)
        self.topics = TopicConfigManager(MemoryTable(), lambda: 5, lambda changed: None, lambda: None)
        self.topics.update([TopicConfig(topic_name="A"), TopicConfig(topic_name="B", perm=6)])
        self.permission = 6
        self.lines: list[str] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)

    def note(self, event: dict[str, Any]) -> None:
        if event.get("log_namespace") == "twisted_mq.broker.registration":
            self.lines.append(f"{event['log_level'].name} {event['log_format'].format(**event)}")

    def make(self, *servers: str, **options: Any) -> Registration:
        self.client = RemotingClient(
            self.clock,
            connect=self.network.connect,
            channel_lost=lambda address: self.registration.connection_lost(address),
        )
        self.answers: list[dict[str, str]] = []
        self.registration = Registration(
            options=BrokerOptions(broker_name="b", broker_cluster_name="C", store_path_root_dir="/nowhere", **options),
            topics=self.topics,
            client=self.client,
            broker_address="10.0.0.9:10911",
            ha_address="10.0.0.9:10912",
            name_servers=servers or (FIRST, SECOND),
            permission=lambda: self.permission,
            on_answer=[self.answers.append],
        )
        return self.registration

    def pump(self, seconds: float = 0) -> None:
        self.clock.advance(seconds)
        for _ in range(6):
            settle(self.clock)

    def test_everything_is_registered_with_each_name_server(self) -> None:
        done = self.make().register()
        self.pump()
        self.assertEqual(self.successResultOf(done), [True, True])
        self.assertEqual(len(self.answers), 2)
        for server in (self.first, self.second):
            (request,) = server.asked
            self.assertEqual(
                request.ext_fields,
                {
                    "brokerName": "b", "brokerAddr": "10.0.0.9:10911", "clusterName": "C", "brokerId": "0",
                    "haServerAddr": "10.0.0.9:10912", "compressed": "false", "enableActingMaster": "false",
                    "bodyCrc32": str(zlib.crc32(request.body) & 0x7FFFFFFF),
                },
            )  # fmt: skip
            wrapper = decode_register_broker(request.body, False, request.version).topic_config_serialize_wrapper
            self.assertEqual(wrapper.topic_config_table, self.topics.topics)
            self.assertEqual(wrapper.data_version, DataVersion(state_version=0, timestamp=5, counter=1))

    def test_of_the_whole_table_only_changed_rows_are_encoded_again(self) -> None:
        encoded: list[str] = []
        registration = self.make(FIRST)
        encode = registration._rows.encode
        registration._rows.encode = lambda name, row: encoded.append(name) or encode(name, row)  # type: ignore[func-returns-value]
        registration.register()
        self.pump()
        self.topics.update([TopicConfig(topic_name="B", perm=4)])
        registration.register([self.topics.topics["B"]])
        self.topics.update([TopicConfig(topic_name="C")])
        registration.register()
        registration.register()
        self.pump()
        tables = [
            decode_register_broker(request.body, False, request.version).topic_config_serialize_wrapper
            for request in self.first.asked
        ]
        names = [sorted(table.topic_config_table) for table in tables]
        self.assertEqual(names, [["A", "B"], ["B"], ["A", "B", "C"], ["A", "B", "C"]])
        self.assertEqual(tables[-1].topic_config_table, self.topics.topics)
        self.assertEqual(encoded, ["A", "B", "B", "C"])
        wrapper = TopicConfigAndMappingSerializeWrapper(
            topic_config_table=dict(self.topics.topics), data_version=self.topics.data_version
        )
        plain = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=[])
        self.assertEqual(self.first.asked[-1].body, encode_register_broker(plain, False))

    def test_registration_and_departure_prove_the_shared_secret_where_there_is_one(self) -> None:
        registration = self.make(FIRST, registration_shared_secret="long and random")
        registration.register()
        registration.unregister()
        self.pump()
        self.assertEqual([request.code for request in self.first.asked], [103, 104])
        for request in self.first.asked:
            self.assertTrue(is_proven(request, "long and random"))
            self.assertFalse(is_proven(request, "another"))

    def test_only_what_changed_is_told_compressed_where_that_is_set(self) -> None:
        done = self.make(FIRST, compressed_register=True).register([self.topics.topics["B"]])
        self.pump()
        self.assertEqual(self.successResultOf(done), [True])
        (request,) = self.first.asked
        self.assertEqual(request.ext_fields["compressed"], "true")
        wrapper = decode_register_broker(request.body, True, request.version).topic_config_serialize_wrapper
        self.assertEqual(list(wrapper.topic_config_table), ["B"])

    def test_name_server_that_missed_something_is_told_all_in_a_version_that_it_can_not_know(self) -> None:
        """The name server accepts any other version: a part would hide the missed topics for good."""
        registration = self.make(FIRST)
        registration.register()
        self.pump()
        self.network.close(FIRST)
        self.topics.update([TopicConfig(topic_name="A", perm=4)])
        registration.register([self.topics.topics["A"]])
        self.pump()
        self.first.listen()
        self.topics.update([TopicConfig(topic_name="B", perm=2)])
        registration.register([self.topics.topics["B"]])
        self.pump()
        tables = [
            decode_register_broker(one.body, False, one.version).topic_config_serialize_wrapper
            for one in self.first.asked
        ]
        self.assertEqual({name: one.perm for name, one in tables[-1].topic_config_table.items()}, {"A": 4, "B": 2})
        self.assertEqual([one.data_version.counter for one in tables], [1, self.topics.data_version.counter + 1])
        registration.register([self.topics.topics["B"]])
        self.pump()
        body = decode_register_broker(self.first.asked[-1].body, False, 479)
        self.assertEqual(list(body.topic_config_serialize_wrapper.topic_config_table), ["B"])

    def test_versions_of_two_starts_differ_where_the_topics_have_one_version(self) -> None:
        """The second start counts a name server that did not answer; the first one may have counted something else."""
        for start in (1000, 2000):
            registration = self.make(FIRST)
            registration.version_of_start = start
            registration._lost = 1
            registration.register()
            self.pump()
            self.assertEqual(registration.version, DataVersion(state_version=0, timestamp=5, counter=start + 2))
        tables = [
            decode_register_broker(one.body, False, one.version).topic_config_serialize_wrapper
            for one in self.first.asked
        ]
        self.assertEqual([one.data_version.counter for one in tables], [1002, 2002])

    def test_the_brokers_permission_is_that_of_all_its_topics(self) -> None:
        self.permission = 4
        self.make(FIRST).register()
        self.pump()
        body = decode_register_broker(self.first.asked[0].body, False, 479)
        table = body.topic_config_serialize_wrapper.topic_config_table
        self.assertEqual({name: config.perm for name, config in table.items()}, {"A": 4, "B": 4})
        self.assertEqual({config.perm for config in self.topics.topics.values()}, {6})

    def test_one_that_is_down_is_logged_once_and_holds_up_nobody(self) -> None:
        self.network.close(FIRST)
        registration = self.make()
        for _ in range(3):
            done = registration.register()
            self.pump()
            self.assertEqual(self.successResultOf(done), [False, True])
        self.assertEqual(len(self.second.asked), 3)
        self.assertEqual(len(self.lines), 1)
        self.assertTrue(self.lines[0].startswith(f"warn name server {FIRST} not reached, retrying: "), self.lines)
        self.first.listen()
        done = registration.register()
        self.pump()
        self.assertEqual(self.successResultOf(done), [True, True])
        self.assertEqual(self.lines[1:], [f"info name server {FIRST} is back"])

    def test_one_that_takes_no_connection_ends_with_the_timeout_while_the_other_knows_all_at_once(self) -> None:
        self.network.silent.add(FIRST)
        done = self.make(register_broker_timeout_mills=24000).register()
        self.pump(0)
        self.assertEqual(len(self.second.asked), 1)
        self.pump(23.9)
        self.assertNoResult(done)
        self.pump(0.2)
        self.assertEqual(self.successResultOf(done), [False, True])

    def test_one_that_dies_before_it_answers_counts_as_not_reached(self) -> None:
        self.first.code = None
        done = self.make(FIRST).register()
        self.pump()
        self.assertNoResult(done)
        self.network.close(FIRST)
        self.pump()
        self.assertEqual(self.successResultOf(done), [False])

    def test_one_whose_answers_cannot_be_read_is_told_once_and_holds_up_nobody(self) -> None:
        self.first.code = MALFORMED
        registration = self.make()
        for _ in range(3):
            done = registration.register()
            self.pump()
            self.assertEqual(self.successResultOf(done), [False, True])
        self.assertEqual(len(self.second.asked), 3)
        self.assertEqual(len(self.lines), 1)
        self.assertIn(f"warn name server {FIRST} ", self.lines[0])
        self.assertIn("extFields", self.lines[0])

    def test_a_refusal_is_logged_with_its_code(self) -> None:
        self.first.code = 1
        done = self.make().register()
        self.pump()
        self.assertEqual((self.successResultOf(done), len(self.answers)), ([False, True], 1))
        self.assertEqual(len(self.lines), 1)
        self.assertIn(f"error name server {FIRST} refused: ", self.lines[0])

    def test_an_address_that_is_none_is_told_and_the_others_go_on(self) -> None:
        done = self.make("nowhere", SECOND).register()
        self.pump()
        self.assertEqual(self.successResultOf(done), [False, True])
        self.assertIn("'nowhere' is not an address of the form host:port", self.lines[0])

    def test_latest_waits_for_all_that_is_under_way(self) -> None:
        registration = self.make(FIRST)
        self.successResultOf(registration.latest())
        registration.register()
        registration.register([])
        waiting = registration.latest()
        self.assertNoResult(waiting)
        self.pump()
        self.successResultOf(waiting)
        self.successResultOf(registration.latest())

    def many_topics(self) -> Registration:
        """A registration of more topics than one turn encodes; what is given to the threads is in `threads`."""
        self.topics.update([TopicConfig(topic_name=f"T{number}") for number in range(ENCODED_AT_ONCE)])
        registration = self.make(FIRST)
        self.threads: list[Callable[[], None]] = []

        def in_thread(function: Callable[..., bytes], *arguments: Any) -> defer.Deferred[bytes]:
            done: defer.Deferred[bytes] = defer.Deferred()
            self.threads.append(lambda: done.callback(function(*arguments)))
            return done

        registration.in_thread = in_thread
        return registration

    def test_very_many_topics_are_encoded_in_a_thread_and_what_changes_meanwhile_follows_them(self) -> None:
        registration = self.many_topics()
        before, change = dict(self.topics.topics), TopicConfig(topic_name="A", perm=4)
        whole = registration.register()
        self.topics.update([change])
        part = registration.register([change])
        self.pump()
        self.assertEqual((self.first.asked, len(self.threads)), ([], 1))
        self.assertNoResult(registration.latest())
        self.threads[0]()
        self.pump()
        self.assertEqual([self.successResultOf(done) for done in (whole, part)], [[True], [True]])
        wrappers = [
            decode_register_broker(request.body, False, request.version).topic_config_serialize_wrapper
            for request in self.first.asked
        ]
        self.assertEqual([one.topic_config_table for one in wrappers], [before, {"A": change}])
        self.assertEqual([one.data_version.counter for one in wrappers], [2, 3])

    def test_what_is_encoded_when_the_broker_leaves_is_not_told(self) -> None:
        registration = self.many_topics()
        whole, left = registration.register(), registration.unregister()
        self.threads[0]()
        self.pump()
        self.assertEqual([self.successResultOf(done) for done in (whole, left)], [[], [True]])
        self.assertEqual([request.code for request in self.first.asked], [RequestCode.UNREGISTER_BROKER])

    def test_latest_waits_for_none_that_was_not_reached_the_last_time(self) -> None:
        self.network.close(FIRST)
        registration = self.make()
        registration.register()
        self.pump()
        self.first.listen()
        self.first.code = None
        registration.register()
        waiting = registration.latest()
        self.pump()
        self.successResultOf(waiting)

    def test_latest_waits_for_nothing_that_changes_later(self) -> None:
        self.first.code = None
        registration = self.make(FIRST, register_broker_timeout_mills=24000)
        registration.register()
        waiting = registration.latest()
        self.pump(20)
        self.first.code = 0
        registration.register()
        self.pump()
        self.first.code = None
        registration.register()
        self.pump(3.9)
        self.assertNoResult(waiting)
        self.pump(0.2)
        self.successResultOf(waiting)
        self.assertNoResult(registration.latest())

    def test_without_name_servers_there_is_nothing_to_wait_for(self) -> None:
        registration = self.make(FIRST)
        registration.name_servers = []
        self.assertEqual(self.successResultOf(registration.register()), [])
        self.successResultOf(registration.latest())
        self.assertEqual(self.successResultOf(registration.unregister()), [])

    def test_a_broker_that_nobody_knows_asks_again_until_one_does(self) -> None:
        self.network.close(FIRST)
        registration = self.make(FIRST)
        registration.register()
        self.pump()
        registration.again()
        self.pump()
        self.assertFalse(registration.is_known)
        self.first.listen()
        registration.again()
        self.pump()
        self.assertTrue(registration.is_known)
        self.assertEqual(len(self.first.asked), 1)
        registration.again()
        self.pump()
        self.assertEqual(len(self.first.asked), 1)

    def test_one_whose_connection_ended_is_told_again_although_another_knows_the_broker(self) -> None:
        registration = self.make()
        registration.register()
        self.pump()
        self.network.close(FIRST)
        self.first.listen()
        self.pump()
        for _ in range(2):
            registration.again()
            self.pump()
        self.assertEqual([len(self.first.asked), len(self.second.asked)], [2, 1])
        self.assertEqual(registration.is_known, True)

    def test_one_that_closes_after_each_registration_costs_the_others_nothing(self) -> None:
        registration = self.make()
        registration.register()
        self.pump()
        for _ in range(5):
            self.network.close(FIRST)
            self.first.listen()
            self.pump()
            registration.again()
            self.pump()
        self.assertEqual([len(self.first.asked), len(self.second.asked)], [6, 1])

    def test_one_that_was_told_alone_is_told_later_changes_too(self) -> None:
        registration = self.make()
        registration.register()
        self.pump()
        self.network.close(FIRST)
        self.first.listen()
        self.pump()
        registration.again()
        waiting = registration.latest()
        self.pump()
        self.successResultOf(waiting)
        registration.register([self.topics.topics["B"]])
        self.pump()
        self.assertEqual([len(self.first.asked), len(self.second.asked)], [3, 2])

    def test_one_whose_connection_ended_and_that_is_gone_waits_for_the_next_turn(self) -> None:
        registration = self.make()
        registration.register()
        self.pump()
        self.network.close(FIRST)
        self.pump()
        for _ in range(2):
            registration.again()
            self.pump()
        self.assertEqual([len(self.first.asked), len(self.second.asked)], [1, 1])

    def test_one_that_is_asked_already_is_not_asked_again(self) -> None:
        self.first.code = None
        registration = self.make(FIRST)
        registration.register()
        self.pump()
        registration.again()
        self.pump()
        self.assertEqual(len(self.first.asked), 1)

    def test_unregister_tells_each_name_server(self) -> None:
        done = self.make(FIRST).unregister()
        self.pump()
        self.assertEqual(self.successResultOf(done), [True])
        (request,) = self.first.asked
        self.assertEqual(request.code, RequestCode.UNREGISTER_BROKER)
        self.assertEqual(
            request.ext_fields,
            {"brokerName": "b", "brokerAddr": "10.0.0.9:10911", "clusterName": "C", "brokerId": "0"},
        )

    def test_a_goodbye_that_is_given_up_leaves_no_errors_behind(self) -> None:
        self.network.silent.update((FIRST, SECOND))
        done = self.make().unregister()
        self.pump()
        done.addTimeout(1, self.clock)
        self.pump(1)
        self.failureResultOf(done)
        self.client.close()
        self.pump(60)
        del done
        gc.collect()
        self.assertEqual(self.flushLoggedErrors(), [])
