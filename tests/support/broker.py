"""A broker without sockets or disk: its controller over a store in memory, and channels whose answers can be looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from twisted_mq.access.server_access import NOBODY_IS_ASKED, ServerAccess
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.filter.consumer_filter_manager import consumer_filters
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.request_table import served_requests
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.protocol.layouts.host import pack_host, pack_ip
from twisted_mq.protocol.layouts.message_id import UniqueKeyMaker
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.tables.escaped_table import EscapedTable

START_SECONDS = 1_795_217_217.0


@attrs.define(eq=False)
class MemoryTable:
    """Replacement of a table of twisted_mq.storage.tables.config_tables that counts its saves."""

    topics: dict[str, Any] = attrs.field(factory=dict)
    groups: dict[str, Any] = attrs.field(factory=dict)
    modes: dict[str, Any] = attrs.field(factory=dict)
    offsets: dict[Any, Any] = attrs.field(factory=dict)
    forbidden: dict[str, dict[str, int]] = attrs.field(factory=dict)
    filters: dict[str, Any] = attrs.field(factory=dict)
    counts: dict[str, Any] = attrs.field(factory=dict)
    queues: dict[str, Any] = attrs.field(factory=dict)
    data_version: DataVersion = attrs.field(factory=DataVersion)
    passed_over: list[Any] = attrs.field(factory=list)
    log_offset: int | None = 0
    saved: int = 0

    def save(self) -> bool:
        self.saved += 1
        return True

    def save_with_backup(self) -> None:
        self.save()


def anywhere(topic: str, queue_id: int) -> int:
    """No bound of committed offsets: for a broker whose messages do not matter."""
    return 2**63 - 1


def _call_now(function: Callable[..., object], *arguments: Any, **named: Any) -> None:
    function(*arguments, **named)


class EscapedInMemory(EscapedTable):
    """The table of escaped messages, which no file keeps."""

    def save(self) -> bool:
        return True

    def save_with_backup(self) -> None:
        self.save()


class BrokerInMemory:
    """A broker at 127.0.0.2:20911 on a virtual clock. Keyword arguments are broker options; `store` is an open one.

    `restarted` is a broker whose clock, store and tables this one goes on with; `tables` are instead of its own, `parts`
    further arguments of the controller, `clock` is one that others share, `access` what it asks first. `queue_end` bounds
    committed offsets in place of the store: see `anywhere`.
    """

    def __init__(
        self,
        *,
        hold_flushes: bool = False,
        store: Any = None,
        restarted: BrokerInMemory | None = None,
        tables: Mapping[str, Any] | None = None,
        parts: Mapping[str, Any] | None = None,
        clock: Any = None,
        queue_end: Callable[[str, int], int] | None = None,
        access: ServerAccess | None = None,
        **options: Any,
    ) -> None:
        self.jumped_ms = 0
        self.clock: Clock = clock or (restarted.clock if restarted else Clock())
        if not restarted and clock is None:
            self.clock.advance(START_SECONDS)
        self.options = BrokerOptions(
            **{"broker_name": "broker-cap", "broker_cluster_name": "CapCluster", "store_path_root_dir": "/nowhere"}
            | options
        )
        config = StoreConfig(
            store_path_root_dir="/nowhere",
            store_host=pack_host("127.0.0.2", 20911),
            max_message_size=self.options.max_message_size,
            flush_disk_type=FlushDiskType(self.options.flush_disk_type),
        )
        self.registered: list[Any] = []
        names = ("topics", "groups", "offsets", "delays", "modes", "metrics", "orders", "filters", "passed")
        fresh = {**{name: MemoryTable() for name in names}, "escaped": EscapedInMemory("")}
        self.tables: dict[str, Any] = {**(restarted.tables if restarted else fresh), **(tables or {})}
        topics = TopicConfigManager(
            self.tables["topics"], self.now_ms, self.registered.append, self.tables["topics"].save
        )
        store = restarted.store if restarted else store
        self.store: Any = store or MemoryMessageStore(
            config, self.wall_ms, is_batch_topic=topics.is_batch_topic, hold_flushes=hold_flushes
        )
        self.store.start()
        groups = SubscriptionGroupManager(
            self.tables["groups"],
            self.now_ms,
            self.tables["groups"].save,
            auto_create=self.options.auto_create_subscription_group,
        )
        topics.add_startup_topics(self.options)
        groups.add_built_in_groups()
        access = access or NOBODY_IS_ASKED
        more: dict[str, Any] = {"access": access, "advertised_ip": "127.0.0.2", "port": 20911, **(parts or {})}
        self.controller = BrokerController(
            options=self.options,
            clock=self.clock,
            call_from_thread=_call_now,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            store=self.store,
            topics=topics,
            groups=groups,
            offsets=ConsumerOffsetManager(
                self.tables["offsets"], self.tables["offsets"].save, queue_end or self.store.max_offset_in_queue
            ),
            filters=consumer_filters(self.options, self.tables["filters"]),
            tables=BrokerTables(
                *(self.tables[name] for name in ("modes", "metrics", "orders", "delays", "passed", "escaped"))
            ),
            unique_keys=UniqueKeyMaker(pack_ip("127.0.0.2"), 7, self.now_ms),
            **more,
        )
        self.served = served_requests(self.controller)
        self.processors = self.served.processors
        self.traffic = Traffic(
            self.processors,
            self.clock,
            streaks=self.served.streaks,
            end_of_read=self.controller.end_of_read,
            channel_lost=self.controller.channel_lost,
            late=self.controller.late,
            budget=Budget(self.options),
        )

    def now_ms(self) -> int:
        return int(self.clock.seconds() * 1000)

    def wall_ms(self) -> int:
        """The time of day: the clock's, and all that it was set by."""
        return self.now_ms() + self.jumped_ms

    def connect(self, port: int = 52174, host: str = "127.0.0.1") -> Peer:
        """A client's connection, from that port of a host."""
        return Peer(self.traffic, port, host)


class Peer:
    """A client that sends frames by hand."""

    def __init__(self, traffic: Traffic, port: int, host: str = "127.0.0.1") -> None:
        self.channel = SocketChannel(traffic)
        self.transport = StringTransport(peerAddress=_Address(host, port))
        self.channel.makeConnection(self.transport)
        self._decoder = FrameDecoder()
        self._opaque = 0

    def send(self, command: RemotingCommand) -> RemotingCommand:
        """Hand a request to the broker; its opaque is set where it is 0."""
        self._opaque += 1
        command.opaque = command.opaque or self._opaque
        self.channel.dataReceived(encode_frame(command))
        return command

    def received(self) -> list[RemotingCommand]:
        """Return the commands that the broker wrote since the last call."""
        data = self.transport.value()
        self.transport.clear()
        return self._decoder.receive_data(data)

    def ask_later(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", **more: Any) -> None:
        """Send a request, whose answer is to be taken from `received`."""
        self.send(RemotingCommand(code, body=body, language="JAVA", ext_fields=fields or {}, **more))

    def ask(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", **more: Any) -> RemotingCommand:
        """The answer to a request that is answered at once."""
        self.ask_later(code, fields, body, **more)
        (answer,) = self.received()
        return answer


@attrs.frozen
class _Address:
    host: str
    port: int
