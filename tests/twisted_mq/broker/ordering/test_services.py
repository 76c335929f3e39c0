"""Brokers as services over loopback, with a name server: topics whose queues move as one, as any client sees them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from twisted_mq.broker.machine import Machine
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import BrokerService
from twisted_mq.coordination.interfaces import Create
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import make_namesrv
from twisted_mq.ordering.documents import decode_lists, encode_lists, encode_topic
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.paths import ROOTS, member_path, topic_path, unit_path
from twisted_mq.protocol.bodies import TopicConfig, TopicRouteData, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient

LOOK_SECONDS = 0.02
SEND = {
    "a": "P",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1",
    "h": "0",
    "j": "0",
    "i": "UNIQ_KEY\x01k\x02",
}


class OrderedServices(TestCase):
    timeout = 60

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="mq-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.ensemble = MemoryEnsemble(reactor)
        self.client = RemotingClient(reactor)
        self.addCleanup(self.client.close)
        self.brokers: dict[str, BrokerService] = {}

    def start_namesrv(self) -> None:
        namesrv = make_namesrv(
            NamesrvOptions(
                bind_address="127.0.0.1",
                listen_port=0,
                support_acting_master=True,
                kv_config_path=os.path.join(self.folder, "kv.json"),
                config_store_path=os.path.join(self.folder, "namesrv.properties"),
            ),
            reactor,
        )
        namesrv.startService()
        self.addCleanup(namesrv.stopService)
        self.namesrv = f"127.0.0.1:{namesrv.port}"

    async def start(self, group: str, broker_id: int) -> BrokerService:
        options = BrokerOptions(
            broker_name=group,
            broker_id=broker_id,
            broker_role="SLAVE" if broker_id else "SYNC_MASTER",
            broker_ip1="127.0.0.1",
            bind_address="127.0.0.1",
            listen_port=0,
            namesrv_addr=self.namesrv,
            store_path_root_dir=os.path.join(self.folder, f"{group}-{broker_id}"),
            mapped_file_size_commit_log=1 << 20,
            sync_broker_member_group_period=100,
            order_coordinator="memory",
        )
        machine = Machine(coordinator=lambda options, reactor: self.ensemble.coordinator(reactor))
        service = BrokerService(options, reactor, machine)
        service.startService()
        self.addCleanup(service.stopService)
        await service.started
        self.brokers[f"{group}-{broker_id}"] = service
        return service

    async def start_groups(self) -> None:
        """Two groups, and a topic whose queues move as one; the first group takes sends."""
        self.start_namesrv()
        operator = self.ensemble.coordinator(reactor)
        await operator.start()
        self.addCleanup(operator.stop)
        await make_paths(operator, ROOTS)
        declared = encode_topic(OrderedTopic("T", 2, ("a", "b"), together=True))
        await operator.commit([Create(topic_path("T"), declared), Create(unit_path("T", "all"), encode_lists(Lists()))])
        topic = TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=2, attributes={"order": "together"})
        for group in ("a", "b"):
            (await self.start(group, 0)).controller.topics.update([topic])
            await self.start(group, 1)
            await self.until(lambda group=group: group in self.lists().send)

    def lists(self) -> Lists:
        node = self.ensemble.tree[unit_path("T", "all")]
        assert node is not None
        return decode_lists("", node.data)

    async def until(self, promise: Any) -> None:
        while not promise():
            await deferLater(reactor, LOOK_SECONDS)

    async def route(self) -> dict[str, tuple[int, dict[int, int]]]:
        """By group the topic's permission, and the port under each broker id."""
        command = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        answer = await self.client.invoke(self.namesrv, command, 5.0)
        if answer.code:
            return {}
        route = decode_body(TopicRouteData, answer.body)
        ports = {
            one.broker_name: {number: int(address.rpartition(":")[2]) for number, address in one.broker_addrs.items()}
            for one in route.broker_datas
        }
        return {one.broker_name: (one.perm, ports.get(one.broker_name, {})) for one in route.queue_datas}

    async def until_route(self, **wanted: tuple[int, dict[int, int]]) -> None:
        while await self.route() != wanted:
            await deferLater(reactor, LOOK_SECONDS)

    def port(self, name: str) -> int:
        return self.brokers[name].port

    async def test_route_shows_the_head_writable_the_consumed_group_readable_and_the_slave_of_a_lost_master(
        self,
    ) -> None:
        await self.start_groups()
        a = {0: self.port("a-0"), 1: self.port("a-1")}
        b = {0: self.port("b-0"), 1: self.port("b-1")}
        await self.until_route(a=(6, a), b=(0, b))
        address = f"127.0.0.1:{self.port('a-0')}"
        answer = await self.client.invoke(address, RemotingCommand(310, body=b"x", ext_fields=SEND), 5.0)
        self.assertEqual(answer.code, 0, answer.remark)
        await self.brokers["a-0"].stopService()
        self.assertEqual((self.lists().head, self.lists().consume[0].group), ("b", "a"))
        await self.until_route(a=(4, {0: self.port("a-1")}), b=(2, b))

    async def test_broker_takes_part_from_its_first_ordered_topic_until_its_stop(self) -> None:
        self.start_namesrv()
        broker = await self.start("a", 0)
        await deferLater(reactor, 0.1)
        self.assertEqual(len(self.ensemble.tree), 1, "nobody spoke to the coordinator")
        broker.controller.topics.update([TopicConfig(topic_name="T", attributes={"order": "queues"})])
        await self.until(lambda: self.ensemble.tree[member_path("a", 0)] is not None)
        await broker.stopService()
        self.assertIsNone(self.ensemble.tree[member_path("a", 0)])

    def test_nothing_of_coordination_is_loaded_by_a_broker_without_it(self) -> None:
        program = (
            "import sys, twisted_mq.broker.tap, twisted_mq.broker.service\n"
            "sys.exit(any(name.startswith(('twisted_mq.coordination', 'kazoo')) for name in sys.modules))"
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", program], check=False).returncode, 0)


class OptionTests(TestCase):
    def test_options_that_do_not_go_together_say_what_to_do(self) -> None:
        from twisted_mq.broker.ordering.coordinator import settings_of

        rows = [
            ({"broker_role": "ASYNC_MASTER"}, "brokerRole=SYNC_MASTER and brokerId=0"),
            ({"broker_role": "SLAVE", "broker_id": 2}, "got brokerRole=SLAVE and brokerId=2"),
            ({"broker_role": "SYNC_MASTER", "order_coordinator": "zk:port"}, "'zk:port' is not HOST:PORT"),
            ({"broker_role": "SYNC_MASTER", "order_coordinator_auth": "me"}, "orderCoordinatorAuth must be USER:PASSWORD"),
        ]  # fmt: skip
        for options, text in rows:
            with self.assertRaises(ValueError) as caught:
                settings_of(BrokerOptions(**{"order_coordinator": "memory"} | options))
            self.assertIn(text, str(caught.exception))
