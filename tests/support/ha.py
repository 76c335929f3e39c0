"""Masters and slaves on a virtual network: stores in memory or on disk, their HA services, and a slave made by hand."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import protocol
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.task import Clock
from twisted.python import failure

from twisted_mq.broker.ha.client import HAClient
from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.layouts.ha import TransferDecoder, encode_confirms, encode_report
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.testing.virtual_network import VirtualNetwork

HA_PORT = 10912
START_SECONDS = 1_795_217_217.0
RECORD_BYTES = 91 + len("TopicA") + len("hello")


def virtual_network(seed: int = 0, **settings: Any) -> VirtualNetwork:
    """A network at a moment of 2026."""
    clock = Clock()
    clock.advance(START_SECONDS)
    return VirtualNetwork(clock, seed, **settings)


def memory_store(clock: Clock, *, hold_flushes: bool = False, sync_flush: bool = False) -> MemoryMessageStore:
    """An open store in memory."""
    flush = FlushDiskType.SYNC_FLUSH if sync_flush else FlushDiskType.ASYNC_FLUSH
    config = StoreConfig(store_path_root_dir="/nowhere", flush_disk_type=flush)
    store = MemoryMessageStore(config, lambda: int(clock.seconds() * 1000), hold_flushes=hold_flushes)
    store.start()
    return store


class Replica:
    """A broker's store and its HA service on a host of the network. `put` is what its clients do."""

    def __init__(self, network: VirtualNetwork, name: str, store: Any = None, **options: Any) -> None:
        self.host = network.host(name)
        self.options = BrokerOptions(broker_name="broker-a", **options)
        sync_flush = self.options.flush_disk_type == "SYNC_FLUSH"
        self.store = store or memory_store(network.clock, sync_flush=sync_flush)
        self.ha = HAService(self.options, self.store, self.host, LateAnswers())
        self.port = self.host.listenTCP(HA_PORT, self.ha.accept)
        self.visible = 0

    def follow(self, master: str) -> HAClient:
        """Replicate from the host of that name."""
        client = HAClient(self.options, self.store, self.host, self._endpoint, self.host.callFromThread, self.dispatch)
        self.ha.follow(client)
        client.update_master_ha_address(f"{master}:{HA_PORT}")
        client.start()
        return client

    def _endpoint(self, host: str, port: int) -> TCP4ClientEndpoint:
        return TCP4ClientEndpoint(self.host, host, port, timeout=3)

    def dispatch(self) -> None:
        self.store.dispatch()
        if self.ha.accept.connections:
            self.ha.accept.pump()

    def put(self, count: int = 1, body: bytes = b"hello") -> int:
        """Append messages; the log's end behind them."""
        for _ in range(count):
            self.store.put_message(InnerMessage("TopicA", 0, body, b"", {}, 0))
        self.dispatch()
        return self.store.max_physical_offset()

    @property
    def log(self) -> bytes:
        """The whole log."""
        found, offset = [], self.store.min_physical_offset()
        while data := self.store.read_log(offset, 1 << 20):
            found.append(bytes(data))
            offset += len(data)
        return b"".join(found)

    @property
    def end(self) -> int:
        return self.store.max_physical_offset()


@attrs.define(eq=False)
class SlaveByHand(protocol.Protocol):
    """A slave that reports only what a test says."""

    decoder: TransferDecoder = attrs.field(factory=TransferDecoder)
    transfers: list[tuple[int, bytes]] = attrs.field(factory=list)
    lost: bool = False

    def dataReceived(self, data: bytes) -> None:
        self.transfers += [(one.physical_offset, one.data) for one in self.decoder.receive_data(data)]

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self.lost = True

    def report(self, offset: int) -> None:
        self.transport.write(encode_report(offset))

    def confirm(self, session: int) -> None:
        """Report from now on in that session of the master's."""
        self.transport.write(encode_confirms(session))

    @property
    def marks(self) -> list[int]:
        """The offsets of transfers without data."""
        return [offset for offset, data in self.transfers if not data]

    @property
    def received(self) -> bytes:
        return b"".join(data for _, data in self.transfers)


@attrs.define(eq=False)
class Stranger(protocol.Protocol):
    """Speaks raw bytes to a master."""

    data: bytes = b""
    lost: bool = False

    def dataReceived(self, data: bytes) -> None:
        self.data += data

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self.lost = True


def join_by_hand(network: VirtualNetwork, name: str, master: str = "master", make: Any = SlaveByHand) -> Any:
    """Connect such a slave, or what `make` makes, from a host."""
    slave = make()
    factory = protocol.ClientFactory.forProtocol(lambda: slave)
    factory.noisy = False
    network.host(name).connectTCP(master, HA_PORT, factory)
    run(network, 0.1)
    return slave


def run(network: VirtualNetwork, seconds: float, step: float = 0.01) -> None:
    """Let time pass in small steps."""
    for _ in range(max(1, round(seconds / step))):
        network.clock.advance(step)
