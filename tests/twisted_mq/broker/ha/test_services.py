"""Master and slave as services over loopback, with a name server between them."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol
from twisted.internet.task import deferLater
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import TestCase

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import BrokerService, make_broker
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import make_namesrv
from twisted_mq.protocol.layouts.ha import TransferDecoder, encode_report
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.listen import PortError
from twisted_mq.storage.tools.compare import compare_stores

LOOK_SECONDS = 0.02
LOG_FILE_BYTES = 1 << 20


def send_fields(number: int) -> dict[str, str]:
    fields = {"a": "G", "b": "BenchmarkTest", "c": "TBW102", "d": "4", "e": str(number % 4), "f": "0", "g": "1"}
    return fields | {"h": "0", "i": f"UNIQ_KEY\x01KEY{number}\x02", "j": "0"}


class Acknowledging(Protocol):
    """A stranger who says that it holds whatever it is sent."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self._decoder = TransferDecoder()

    def connectionMade(self) -> None:
        self.transport.write(encode_report(0))

    def dataReceived(self, data: bytes) -> None:
        for transfer in self._decoder.receive_data(data):
            self.acknowledged = transfer.physical_offset + len(transfer.data)
            self.transport.write(encode_report(self.acknowledged))


class PairTests(TestCase):
    timeout = 30

    async def pair(self, **of_master: Any) -> tuple[BrokerService, BrokerService]:
        self.start_namesrv()
        master = await self.start("master", 0, **of_master)
        secret = of_master.get("ha_shared_secret")
        slave = await self.start("slave", 1, broker_role="SLAVE", slave_read_enable=True, ha_shared_secret=secret)
        return master, slave

    def start_namesrv(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="mq-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        namesrv = make_namesrv(
            NamesrvOptions(
                bind_address="127.0.0.1",
                listen_port=0,
                kv_config_path=os.path.join(self.folder, "kv.json"),
                config_store_path=os.path.join(self.folder, "namesrv.properties"),
            ),
            reactor,
        )
        namesrv.startService()
        self.addCleanup(namesrv.stopService)
        self.namesrv = f"127.0.0.1:{namesrv.port}"
        self.client = RemotingClient(reactor)
        self.addCleanup(self.client.close)

    async def start(self, name: str, broker_id: int, **settings: Any) -> BrokerService:
        options = BrokerOptions(
            broker_name="broker-a",
            broker_id=broker_id,
            broker_ip1="127.0.0.1",
            bind_address="127.0.0.1",
            listen_port=0,
            namesrv_addr=self.namesrv,
            store_path_root_dir=os.path.join(self.folder, name),
            mapped_file_size_commit_log=LOG_FILE_BYTES,
            sync_broker_member_group_period=100,
            **settings,
        )
        service = make_broker(options, reactor)
        service.startService()
        self.addCleanup(service.stopService)
        await service.started
        return service

    async def send(self, broker: BrokerService, number: int) -> RemotingCommand:
        return await self.client.invoke(
            f"127.0.0.1:{broker.port}", RemotingCommand(310, body=b"x" * 500, ext_fields=send_fields(number)), 10.0
        )

    async def until(self, promise: Any) -> None:
        while not promise():
            await deferLater(reactor, LOOK_SECONDS)

    def end(self, broker: BrokerService) -> int:
        return broker.controller.store.max_physical_offset()

    async def test_slave_follows_serves_and_takes_its_masters_place_for_readers(self) -> None:
        master, slave = await self.pair()
        for number in range(40):
            self.assertEqual((await self.send(master, number)).code, 0)
        await self.until(lambda: self.end(slave) == self.end(master) > 0)
        self.assertFalse(compare_stores(os.path.join(self.folder, "master"), os.path.join(self.folder, "slave")))
        topics = slave.controller.topics
        await self.until(lambda: topics.data_version == master.controller.topics.data_version)
        self.assertEqual((await self.send(slave, 0)).code, 2)
        self.assertEqual(slave.controller.min_broker_id, 0)
        await master.stopService()
        await self.until(lambda: slave.controller.min_broker_id == 1)
        self.assertEqual(slave.controller.store.max_offset_in_queue("BenchmarkTest", 1), 10)

    async def test_sends_of_a_sync_master_wait_for_the_slave(self) -> None:
        master, slave = await self.pair(broker_role="SYNC_MASTER", in_sync_replicas=2, slave_timeout=300)
        await self.until(lambda: master.controller.ha.accept.acknowledged_offsets() == [0])
        self.assertEqual((await self.send(master, 1)).code, 0)
        self.assertEqual(self.end(slave), self.end(master))
        await slave.stopService()
        self.assertEqual((await self.send(master, 2)).code, 12)
        again = await self.start("slave", 1, broker_role="SLAVE")
        await self.until(lambda: master.controller.ha.accept.acknowledged_offsets() == [self.end(master)])
        self.assertEqual((await self.send(master, 3)).code, 0)
        self.assertEqual(self.end(again), self.end(master))

    async def test_stranger_who_acknowledges_all_lets_no_send_of_a_sync_master_go(self) -> None:
        """Apache's answers SEND_OK. Once a slave is registered with the stranger's host, who is there counts."""
        self.start_namesrv()
        master = await self.start("master", 0, broker_role="SYNC_MASTER", in_sync_replicas=2, slave_timeout=300)
        stranger = await self.acknowledging(master)
        self.assertEqual(master.controller.ha.accept.acknowledged_offsets(), [])
        self.assertEqual((await self.send(master, 1)).code, 12)
        self.assertEqual(stranger.acknowledged, self.end(master))
        await self.start("slave", 1, broker_role="SLAVE")
        await self.until(lambda: len(master.controller.ha.accept.acknowledged_offsets()) == 2)
        self.assertEqual((await self.send(master, 2)).code, 0)

    async def acknowledging(self, master: BrokerService) -> Acknowledging:
        host, port = master.controller.ha.address.split(":")
        stranger = await connectProtocol(TCP4ClientEndpoint(reactor, host, int(port)), Acknowledging())
        self.addCleanup(stranger.transport.abortConnection)
        return stranger

    async def test_shared_secret_opens_the_ha_port_to_those_who_know_it(self) -> None:
        secret = "a long and random word"
        master, slave = await self.pair(ha_shared_secret=secret)
        self.assertEqual((await self.send(master, 1)).code, 0)
        await self.until(lambda: self.end(slave) == self.end(master) > 0)
        config = await self.client.invoke(f"127.0.0.1:{master.port}", RemotingCommand(26), 10.0)
        self.assertNotIn(secret.encode(), config.body)
        with capturedLogs() as events:
            stranger = await self.start("stranger", 2, broker_role="SLAVE", ha_shared_secret="another one")
            await self.until(lambda: any("it refuses haSharedSecret" in formatEvent(event) for event in events))
        self.assertEqual((self.end(stranger), len(master.controller.ha.runtime_info().ha_connection_info)), (0, 1))

    async def test_taken_ha_port_is_named(self) -> None:
        master, _ = await self.pair()
        with self.assertRaisesRegex(PortError, "set another haListenPort"):
            await self.start("third", 2, ha_listen_port=int(master.controller.ha.address.rpartition(":")[2]))
