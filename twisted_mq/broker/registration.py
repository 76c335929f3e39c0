"""Registers the broker with every name server: at start, each 30 s, and at once when a topic changes (Apache: BrokerOuterAPI).

While no name server knows the broker, it tries every 2 s; it registers as soon with one whose connection it lost, and with
that one alone: that one forgot the broker.

A name server that cannot be reached is logged once and tried again at the next turn; the others do not wait for it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.ordered_topics import Ordering
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicQueueMappingInfo,
    encode_register_broker,
    encode_row,
    with_rows,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.flags import PERM_READ_WRITE
from twisted_mq.protocol.headers import RegisterBrokerRequestHeader, UnRegisterBrokerRequestHeader
from twisted_mq.protocol.requests.registration_proof import PROOF, registration_proof
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.reactor_threads import InThread, at_once
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.storage.tables.kept_rows import KeptRows

Result = TypeVar("Result")

VERSION_BITS = 40
"""Size of the number that each start of a broker adds to its versions. Changes are so few that no two starts use one version."""

ENCODED_AT_ONCE = 256
"""Topics that are encoded at once. More are encoded in a thread: the first time, 20,000 take half a second."""


def registration_body(
    configs: list[TopicConfig],
    version: DataVersion,
    permission: int,
    compressed: bool,
    mappings: Mapping[str, TopicQueueMappingInfo] | None = None,
    rows: KeptRows | None = None,
) -> bytes:
    """Return the topics as a broker with this permission registers them, with the logical queues of static topics.

    `rows` are those of the last whole table: only changed ones are encoded again. The compressed form has no rows.
    """
    if permission & PERM_READ_WRITE != PERM_READ_WRITE:
        configs = [attrs.evolve(config, perm=config.perm & permission) for config in configs]
    wrapper = TopicConfigAndMappingSerializeWrapper(
        topic_config_table={config.topic_name: config for config in configs},
        data_version=version,
        topic_queue_mapping_info_map=dict(mappings or {}),
    )
    if rows is not None and not compressed:
        wrapper = with_rows(wrapper, "topic_config_table", rows.texts(wrapper.topic_config_table))
    return encode_register_broker(
        RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=[]), compressed
    )


@attrs.define(eq=False)
class _Change:
    """A registration in progress: the answers to wait for, and a Deferred that fires once it was sent."""

    left: int = 1


@attrs.define(eq=False)
class Registration:
    """The broker's registration at name servers; `name_servers` are host:port texts."""

    options: BrokerOptions
    topics: TopicConfigManager
    client: RemotingClient
    broker_address: str
    ha_address: str
    name_servers: Sequence[str]
    permission: Callable[[], int]
    in_thread: InThread = at_once
    static_topics: StaticTopics | None = None
    ordering: Ordering = attrs.field(factory=Ordering)
    version_of_start: int = 0
    """A number drawn at each start and added to each version. Versions count the changes of one process. A name server may not
    have noticed the end of the last process. Without this number it could take a new version for one that it knows."""
    on_answer: list[Callable[[dict[str, str]], None]] = attrs.field(factory=list)
    """Called with the fields of each answer; they name the master to a slave (haServerAddr, masterAddr)."""
    log = Logger()
    _unreachable: set[str] = attrs.field(factory=set)
    _knowing: set[str] = attrs.field(factory=set)
    """Name servers that accepted the last registration."""
    _parted: set[str] = attrs.field(factory=set)
    """Name servers whose connection was lost after that: each has forgotten the broker."""
    _changes: set[_Change] = attrs.field(factory=set)
    _waiting: list[tuple[set[_Change], defer.Deferred[None]]] = attrs.field(factory=list)
    _order: defer.DeferredLock = attrs.field(factory=defer.DeferredLock)
    _rows: KeptRows = attrs.field(factory=lambda: KeptRows(encode_row))
    held_back: bool = False
    """True while nothing is registered yet: a master asks its slaves first what they did in its place."""
    _left: bool = False
    _asked: int = 0
    """Requests that name servers have not answered yet."""
    _lost: int = 0
    """The times that a name server stopped answering: it may lack any version up to then, so each counts as a new version."""

    def register(
        self, changed: list[TopicConfig] | None = None, alone: Collection[str] | None = None
    ) -> defer.Deferred[list[bool]]:
        """Register all topics, or only those that changed; fires with what each name server said, in their order.

        `alone` are the name servers to register with; without it, all. Nothing is sent while the registration is held back.
        """
        if self.held_back:
            return defer.succeed([])
        change = _Change()
        self._changes.add(change)
        sent = self._order.run(self._send, changed, change, alone)
        sent.addBoth(self._one_less, change)
        return sent.addCallback(lambda calls: defer.gatherResults(calls))

    def _send(
        self, changed: list[TopicConfig] | None, change: _Change, alone: Collection[str] | None
    ) -> defer.Deferred[list[defer.Deferred[bool]]]:
        """Send the table. Fires with the calls once all have left: an older version never follows a later one."""
        if self._unreachable:
            changed = None  # with a part in a new version, a name server would assume that it knows what it missed
        configs = list(self.topics.topics.values()) if changed is None else changed
        if self.ordering.routes is not None:
            configs = self.ordering.routes.shown(configs)
        rows = self._rows if changed is None else None
        compressed, mappings = self.options.compressed_register, self._mappings(changed)
        arguments = configs, self.version, self.permission(), compressed, mappings, rows
        in_thread = at_once if len(configs) <= ENCODED_AT_ONCE else self.in_thread
        return in_thread(registration_body, *arguments).addCallback(self._call_all, change, alone)

    @property
    def version(self) -> DataVersion:
        """Return the version in which the topics are registered."""
        version, routes = self.topics.data_version, self.ordering.routes
        shown = 0 if routes is None else routes.version
        return attrs.evolve(version, counter=version.counter + self.version_of_start + self._lost + shown)

    def _mappings(self, changed: list[TopicConfig] | None) -> dict[str, TopicQueueMappingInfo]:
        if self.static_topics is None:
            return {}
        return self.static_topics.shown(None if changed is None else [config.topic_name for config in changed])

    def _call_all(self, body: bytes, change: _Change, alone: Collection[str] | None) -> list[defer.Deferred[bool]]:
        if self._left:
            return []
        header = self._header(body)
        called = [address for address in self.name_servers if alone is None or address in alone]
        awaited = [address not in self._unreachable for address in called]
        change.left += sum(awaited)
        calls = [self._call(address, RequestCode.REGISTER_BROKER, header, body) for address in called]
        for call, is_awaited in zip(calls, awaited, strict=True):
            if is_awaited:
                call.addBoth(self._one_less, change)
        return calls

    def again(self) -> defer.Deferred[list[bool]] | None:
        """Register if no name server knows the broker, and no request is pending: a name server that starts late then knows
        it in seconds. If others know it, register only with those that have forgotten it.
        """
        if (self.is_known and not self._parted) or self._left or self._asked or not self.name_servers:
            return None
        return self.register(alone=frozenset(self._parted) if self.is_known else None)

    def connection_lost(self, address: str) -> None:
        """Note that a name server has forgotten the broker, as it does when their connection ends."""
        if address in self._knowing:
            self._knowing.discard(address)
            self._parted.add(address)

    def latest(self) -> defer.Deferred[None]:
        """Fire when every name server that answers knows all earlier changes, after registerBrokerTimeoutMills at the latest.

        A name server that could not be reached the last time is not waited for.
        """
        if not self._changes:
            return defer.succeed(None)
        waiting: defer.Deferred[None] = defer.Deferred()
        self._waiting.append((set(self._changes), waiting))
        return waiting

    def _one_less(self, result: Result, change: _Change) -> Result:
        change.left -= 1
        if not change.left:
            self._changes.discard(change)
            for changes, _ in self._waiting:
                changes.discard(change)
            known = [waiting for changes, waiting in self._waiting if not changes]
            self._waiting = [one for one in self._waiting if one[0]]
            for waiting in known:
                waiting.callback(None)
        return result

    @property
    def is_known(self) -> bool:
        """True if a name server accepted the last registration; only then do clients find the broker."""
        return any(address in self._knowing for address in self.name_servers)

    def unregister(self) -> defer.Deferred[list[bool]]:
        """Take the broker out of every name server's routes, for good. Can be cancelled: then it fails."""
        self._left = True
        self._knowing.clear()
        header = UnRegisterBrokerRequestHeader(
            broker_name=self.options.broker_name,
            broker_addr=self.broker_address,
            cluster_name=self.options.broker_cluster_name,
            broker_id=self.options.broker_id,
        )
        calls = [self._call(address, RequestCode.UNREGISTER_BROKER, header, b"") for address in self.name_servers]
        return defer.gatherResults(calls, consumeErrors=True)

    def _header(self, body: bytes) -> RegisterBrokerRequestHeader:
        options = self.options
        acts_in_turn = options.enable_slave_acting_master
        return RegisterBrokerRequestHeader(
            broker_name=options.broker_name,
            broker_addr=self.broker_address,
            cluster_name=options.broker_cluster_name,
            ha_server_addr=self.ha_address,
            broker_id=options.broker_id,
            heartbeat_timeout_millis=options.broker_not_active_timeout_millis if acts_in_turn else None,
            enable_acting_master=acts_in_turn or (self.ordering.routes is not None and self.ordering.routes.acting),
            compressed=options.compressed_register,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )

    def _call(
        self, address: str, code: int, header: RegisterBrokerRequestHeader | UnRegisterBrokerRequestHeader, body: bytes
    ) -> defer.Deferred[bool]:
        command = RemotingCommand.request(code, encode_header(header), body)
        secret = self.options.registration_shared_secret
        if secret is not None:
            command.ext_fields[PROOF] = registration_proof(command, secret)
        self._asked += 1
        sent = self.client.invoke(address, command, self.options.register_broker_timeout_mills / 1000)
        told = sent.addCallback(self._told, address).addErrback(self._failed, address)
        told.addBoth(self._answered, address)
        return told

    def _answered(self, result: Result, address: str) -> Result:
        self._asked -= 1
        self._parted.discard(address)
        return result

    def _told(self, answer: RemotingCommand, address: str) -> bool:
        if answer.code != 0:
            self._knowing.discard(address)
            self.log.error("name server {a} refused: {e}", a=address, e=BrokerError(answer.code, answer.remark or ""))
            return False
        if not self._left:
            self._knowing.add(address)
        fields = answer.ext_fields
        if address in self._unreachable:
            self._unreachable.discard(address)
            self.log.info("name server {a} is back", a=address)
        for tell in self.on_answer:
            tell(fields)
        return True

    def _failed(self, reason: failure.Failure, address: str) -> bool:
        reason.trap(RemotingError, ProtocolError)
        self._knowing.discard(address)
        if address not in self._unreachable:
            self._unreachable.add(address)
            self._lost += 1
            self.log.warn("name server {a} not reached, retrying: {e}", a=address, e=reason.value)
        return False
