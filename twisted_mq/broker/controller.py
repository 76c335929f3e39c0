"""Holds the state that all parts of one broker share (Apache: BrokerController)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.access.server_access import NOBODY_IS_ASKED, ServerAccess
from twisted_mq.broker.clients.change_notices import ChangeNotices
from twisted_mq.broker.clients.consumer_figures import ConsumerFigures
from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.producer_manager import GROUPS_OF_SLICE, SLICE_MS, ProducerManager, client_lane
from twisted_mq.broker.clients.rebalance_lock import RebalanceLockManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.cold_reads import ColdReads
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager
from twisted_mq.broker.flush_answers import FlushAnswers
from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.long_answers import LongAnswers
from twisted_mq.broker.long_polling import LongPolling
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.ordered_topics import Ordering
from twisted_mq.broker.pop.pop_service import PopService
from twisted_mq.broker.request_bodies import RequestBodies
from twisted_mq.broker.schedule.postpone import Postponement
from twisted_mq.broker.schedule.waiting_messages import WaitingMessages
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.call_times import TimedCall
from twisted_mq.broker.store_options import store_config
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.other_brokers import OtherBrokers
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.broker.topics.topic_routes import TopicRoutes
from twisted_mq.broker.transaction.transaction_service import TransactionService
from twisted_mq.clocks import ClockSteps
from twisted_mq.logs import Logger
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.message_id import UniqueKeyMaker
from twisted_mq.reactor_threads import CallFromThread, InThread, at_once
from twisted_mq.remoting.channel import Channel
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.routing.route_cache import RouteCache
from twisted_mq.storage.interfaces import (
    Appended,
    GetResult,
    IMessageStore,
    InnerMessage,
    Places,
    PlainMessages,
    PutResult,
)
from twisted_mq.turns import Turns, Work


@attrs.define(eq=False, kw_only=True)
class BrokerController:
    """The state of one broker. `call_from_thread` passes a call to the reactor's thread; times are ms.

    Timers and everything that waits follow `now_ms`; `wall_ms` is the time of day for the times in messages.

    The store is open; topics and groups are those at the start. `clean` is True if the last broker stopped properly.
    `ha_address` is the address that slaves get; `route_cache` asks the name servers, if there are any. `in_thread` runs
    work that waits for the disk; `known` fires when the name servers know of all changes, `registered` when these are on
    disk too.
    """

    options: BrokerOptions
    clock: interfaces.IReactorTime
    call_from_thread: CallFromThread
    now_ms: Callable[[], int]
    store: IMessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    filters: ConsumerFilterManager
    tables: BrokerTables
    advertised_ip: str
    port: int
    unique_keys: UniqueKeyMaker
    access: ServerAccess = NOBODY_IS_ASKED
    ha_address: str = ""
    route_cache: RouteCache | None = None
    clean: bool = False
    in_thread: InThread = at_once
    wall_ms: Callable[[], int] = attrs.Factory(lambda broker: broker.now_ms, takes_self=True)
    registered: Callable[[], defer.Deferred[None]] = lambda: defer.succeed(None)
    known: Callable[[], defer.Deferred[None]] = lambda: defer.succeed(None)
    random: random.Random = attrs.field(factory=random.Random)
    late: LateAnswers = attrs.field(factory=LateAnswers)
    min_broker_id: int = 0
    acts_as_master: bool = False
    """True while this slave acts for its master, which the name servers do not know any more (enableSlaveActingMaster)."""
    static_topics: StaticTopics = attrs.field(
        default=attrs.Factory(lambda broker: StaticTopics(broker.options.broker_name, broker.now_ms), takes_self=True)
    )
    others: OtherBrokers = attrs.field(factory=OtherBrokers)
    steps: ClockSteps = attrs.field(
        init=False, default=attrs.Factory(lambda broker: ClockSteps(broker.now_ms, broker.wall_ms), takes_self=True)
    )
    cold_reads: ColdReads = attrs.field(init=False)
    statistics: BrokerStatistics = attrs.field(init=False)
    timed_put: TimedCall[[InnerMessage], PutResult] = attrs.field(init=False)
    timed_plain_puts: TimedCall[[PlainMessages], Places] = attrs.field(init=False)
    timed_get: TimedCall[..., GetResult] = attrs.field(init=False)
    polling: LongPolling = attrs.field(init=False)
    rotation: Rotation = attrs.field(init=False)
    turns: Turns = attrs.field(init=False)
    long_answers: LongAnswers = attrs.field(init=False)
    bodies: RequestBodies = attrs.field(init=False)
    locks: RebalanceLockManager = attrs.field(init=False)
    producers: ProducerManager = attrs.field(init=False)
    consumers: ConsumerManager = attrs.field(init=False)
    _notices: ChangeNotices = attrs.field(init=False)
    consumer_figures: ConsumerFigures = attrs.field(init=False)
    routes: TopicRoutes = attrs.field(init=False)
    ha: HAService = attrs.field(init=False)
    durability: Durability = attrs.field(init=False)
    waiting: WaitingMessages = attrs.field(init=False)
    postponement: Postponement = attrs.field(init=False)
    transactions: TransactionService = attrs.field(init=False)
    ordering: Ordering = attrs.field(init=False)
    pop: PopService = attrs.field(init=False)
    _flushes: FlushAnswers = attrs.field(init=False)
    _awaits_flush: bool = False
    _closes: bool = False
    _hides_unflushed: bool = attrs.field(init=False)
    _appended: Appended = attrs.field(init=False)
    _is_replica: bool = attrs.field(init=False)
    log = Logger()

    def __attrs_post_init__(self) -> None:
        options, store, seconds = self.options, self.store, self.clock.seconds
        self.statistics = BrokerStatistics(seconds())
        if options.collects_figures:
            self.statistics.measure(seconds)
        self.timed_put = TimedCall(store.put_message, seconds)
        self.timed_plain_puts = TimedCall(store.put_plain, seconds, self.timed_put.times)
        self.timed_get = TimedCall(store.get_message, seconds)
        self.polling = LongPolling(self.clock, self.now_ms, self.late, self.dispatch)
        self.rotation = Rotation(self.clock)
        self.turns = Turns(self.rotation)
        self.long_answers = LongAnswers(self.turns, self.in_thread)
        self.bodies = RequestBodies(self.turns, self.in_thread)
        self._flushes = FlushAnswers(store, self.call_from_thread, self.late, self._show_flushed)
        self.locks = RebalanceLockManager(options.rebalance_lock_max_live_time)
        self.producers = ProducerManager(options.channel_expired_timeout)
        self.consumers = ConsumerManager(self.consumer_ids_changed, options.channel_expired_timeout)
        self._notices = ChangeNotices(self.turns, self.consumers.channels_of)
        self.consumers.conflicts.on_conflict.append(
            lambda conflict: self.statistics.conflicts[f"{conflict.topic}@{conflict.group}"].add(1, 0)
        )
        self.consumers.on_group_gone.append(lambda group: self.filters.unregister(group, self.now_ms()))
        self.consumer_figures = ConsumerFigures(self.consumers, lambda topic: self.topics.get(topic) is not None)
        self.cold_reads = ColdReads(options, self.now_ms)
        self.routes = TopicRoutes(self.topics, options.broker_name, self.route_cache)
        self.ha = HAService(options, store, self.clock, self.late, self.ha_address, self.rotation)
        if not self.clean:
            self.ha.accept.recovered()
        self.durability = Durability(self)
        tables = self.tables
        self.waiting = WaitingMessages(self, tables.delays, tables.escaped, clean=self.clean, in_thread=self.in_thread)
        self.postponement = Postponement(options, self.now_ms, self.random, self.waiting.crowd, self.steps.ms)
        self.transactions = TransactionService(self)
        self.pop = PopService(self, self.tables.orders)
        self.ordering = Ordering(options.order_coordinator is not None)
        self._hides_unflushed = options.is_sync_flush
        self._appended = store.dispatcher
        self._is_replica = options.is_slave
        self._time_calls()

    @property
    def is_slave(self) -> bool:
        """True if the messages come from a master and not from clients."""
        return self.options.is_slave

    @property
    def store_host(self) -> bytes:
        """Return the advertised address as records and message ids hold it."""
        return pack_host(self.advertised_ip, self.port)

    @property
    def address(self) -> str:
        """Return the advertised address as host:port."""
        return f"{self.advertised_ip}:{self.port}"

    def configure_store(self) -> None:
        """Make the store use the options as they are now."""
        self.store.configure(store_config(self.options, self.store_host))

    def end_of_read(self) -> None:
        """Dispatch if a read's requests appended something, or woke others; called after each read.

        A slave also dispatches what it has of its master's log.
        """
        if self._appended.pending or self.polling.woken or self._is_replica:
            self.dispatch()

    def dispatch(self) -> bool:
        """Make visible what was appended, then answer the requests that waited for it. Returns whether a slave has more left.

        Under synchronous flush, messages that are not on disk yet become visible when they are, also if no sender waits for them.
        """
        polling = self.polling
        more = self.store.dispatch(polling.arrived if polling.lines else None)
        if polling.woken and polling.answer_woken():
            self.store.dispatch(polling.arrived)
        if self.ha.accept.connections:
            self.ha.accept.pump()
        if self._hides_unflushed and not self._awaits_flush:
            end = self.store.max_physical_offset()
            if self.store.flushed_offset() < end:
                self._awaits_flush = True
                self.store.when_flushed(end, lambda done: self.call_from_thread(self._flushed_more, done))
        return more

    def _flushed_more(self, done: bool) -> None:
        self._awaits_flush = False
        if done:
            self._show_flushed()

    def _show_flushed(self) -> None:
        if not self._closes:
            self.dispatch()

    def close_begins(self) -> None:
        """Leave it to the store's close, in its thread, to make visible what is flushed from now on."""
        self._closes = True

    def flushed(self, offset: int) -> defer.Deferred[bool]:
        """Fire when the log is on disk up to `offset` (True), or that took too long (False). Then the messages become visible."""
        return self._flushes.flushed(offset)

    def consumer_ids_changed(self, group: str) -> None:
        """Notify the members of a group that it changed, if the settings say so."""
        if self.options.notify_consumer_ids_changed_enable:
            self._notices.changed(group)

    def channel_lost(self, channel: Channel) -> None:
        """Forget a client whose connection was lost in all its groups, in slices, after the heartbeat that is being read."""
        self.turns.must_run(client_lane(channel), self._leave(channel))

    def _leave(self, channel: Channel) -> Work[None]:
        slice_end = self.now_ms() + SLICE_MS
        leaving = itertools.chain(self.producers.leave(channel), self.consumers.leave(channel))
        for number, _ in enumerate(leaving, 1):
            if not number % GROUPS_OF_SLICE or self.now_ms() >= slice_end:
                yield None
                slice_end = self.now_ms() + SLICE_MS

    def take_snapshot(self) -> None:
        """Record the current totals, and time the next puts and gets; called each second."""
        self.statistics.take_snapshot(self.clock.seconds())
        self._time_calls()

    def take_sample(self, now_seconds: float) -> None:
        """Sample the counters of topics and groups, in slices; called each 10 s."""
        self.turns.must_run("samples", self.statistics.sample(now_seconds, self.wall_ms()))

    def _time_calls(self) -> None:
        self.timed_put.arm()
        self.timed_plain_puts.arm()
        if self.statistics.request_times is not None:
            self.statistics.request_times.arm()
        self.timed_get.arm()

    def close_expired_clients(self) -> None:
        """Close the connections of clients whose heartbeats stopped, and free the queues that they locked."""
        now = self.now_ms()
        self.locks.forget_expired(now)
        for channel in dict.fromkeys([*self.producers.expired(now), *self.consumers.expired(now)]):
            self.log.info("client without heartbeat closed: peer={peer}", peer=channel.address)
            self.channel_lost(channel)
            channel.close()
