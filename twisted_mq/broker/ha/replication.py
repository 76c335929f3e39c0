"""Replicates a broker on its reactor: on a slave, the link to its master and the copies of the master's tables.

Schedule (Apache: BrokerController.initializeBrokerScheduledTasks): tables each 60 s and as soon as the master is known,
where Apache waits the first 60 s too; the timer's checkpoint each 3 s; the group's members each
syncBrokerMemberGroupPeriod. Offsets that consumers committed here are sent to the master within 3 s. Offsets that are
past the end of this log are copied again.

A slave acts for its master (enableSlaveActingMaster) while no name server that answers knows the master, and its id is the
lowest of those left. Where no name server answers, nothing changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.broker.ha.client import HAClient
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.ha.slave_synchronize import SlaveParts, SlaveSynchronize
from twisted_mq.broker.registration import Registration
from twisted_mq.logs import Logger
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.reactor_threads import CallFromThread
from twisted_mq.remoting.client import Connect, RemotingClient, tcp_endpoint
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.storage.timer.timer_metrics import TimerMetrics

SYNC_SECONDS = 60.0
CHECKPOINT_SECONDS = 3.0
CONNECT_SECONDS = 3.0

Result = TypeVar("Result")
Every = Callable[[float, Callable[[], object]], None]


class ReplicatedParts(SlaveParts, Protocol):
    """The parts of the broker that follow a master."""

    clock: interfaces.IReactorTime
    store: IMessageStore
    call_from_thread: CallFromThread
    ha: HAService
    min_broker_id: int
    acts_as_master: bool

    def dispatch(self) -> bool: ...


class Replication:
    """The replication of a slave; `every` starts periodic work and waits for its Deferreds. Masters need none."""

    log = Logger()

    def __init__(
        self,
        broker: ReplicatedParts,
        reactor: interfaces.IReactorTime,
        remoting: RemotingClient,
        registration: Registration,
        link: Connect | None = None,
    ) -> None:
        """Create the replication. `link` makes the connection to the master's log; without it, a plain one is used."""
        self._broker = broker
        self._remoting = remoting
        self._registration = registration
        self._group = MemberGroup(broker.options, registration.name_servers, remoting.invoke)
        folder = os.path.join(broker.options.store_path_root_dir, "config")
        self._checkpoint_path = os.path.join(folder, "timercheck")
        self._metrics = TimerMetrics(os.path.join(folder, "timermetrics"))
        self.synchronize = SlaveSynchronize(
            broker,
            remoting.invoke,
            broker.tables.delays,
            self._metrics.save,
            self._save_checkpoint,
            lambda: self.client.following,
        )
        self.client = HAClient(
            broker.options,
            broker.store,
            reactor,
            link or tcp_endpoint(reactor, CONNECT_SECONDS),
            broker.call_from_thread,
            broker.dispatch,
        )
        broker.ha.follow(self.client)
        self.lacks_topic: Callable[[], bool] = lambda: False
        """Returns True if the master is known to have a topic that is missing here: the tables are copied at once then."""
        self.on_acting: list[Callable[[bool], object]] = []
        """Called when this slave begins to act for its master, or ceases to. Tables are copied once the Deferreds of all fire."""
        self._changing: defer.Deferred[Any] = defer.succeed(None)
        self._last_sync: float | None = None
        self._looks: defer.Deferred[None] | None = None

    def start(self, every: Every) -> None:
        """Follow the master that registration returns, or haMasterAddress (which 5.3.3 ignores by a defect)."""
        options = self._broker.options
        self.client.update_master_ha_address(options.ha_master_address)
        self._registration.on_answer.append(self.registered)
        self.client.start()
        self._broker.ha.group_changed = self._noticed
        every(CHECKPOINT_SECONDS, self._sync_what_is_due)
        every(options.sync_broker_member_group_period / 1000, self.look_for_master)

    def registered(self, fields: dict[str, str]) -> None:
        """Take the master's address from a name server's answer to a registration."""
        if not self._broker.options.ha_master_address:
            self.client.update_master_ha_address(fields.get("haServerAddr"))
        self._set_master(fields.get("masterAddr"))

    def _set_master(self, address: str | None) -> None:
        known = self.synchronize.master_address
        self.synchronize.set_master_address(address)
        if address is not None and known is None:
            self._last_sync = None

    def _sync_what_is_due(self) -> defer.Deferred[None]:
        return defer.ensureDeferred(self._sync())

    async def _sync(self) -> None:
        await self._changed()
        if self.synchronize.master_address is None or self._broker.acts_as_master:
            return
        self.synchronize.settle_progress()
        now = self._broker.clock.seconds()
        if self._last_sync is None or now - self._last_sync >= SYNC_SECONDS or self.lacks_topic():
            self._last_sync = now
            await self.synchronize.sync_all()
        elif self.synchronize.wants_offsets:
            await self.synchronize.sync_offsets()
        if self._broker.options.timer_wheel_enable:
            await self.synchronize.sync_timer_checkpoint()

    def _save_checkpoint(self, data: bytes) -> None:
        """Keep the progress of the master's timer; this broker's own files of it do not exist yet."""
        theirs = TimerCheckpoint.decode(data)
        mine = attrs.evolve(theirs, last_timer_log_flush_position=0, last_timer_queue_offset=0)
        mine.save(self._checkpoint_path, sync=lambda descriptor: None)

    # the members of the group

    def look_for_master(self) -> defer.Deferred[None]:
        """Ask the name servers who is in the group; a call while they are asked waits for the same answers."""
        if self._looks is None:
            looks = self._looks = defer.ensureDeferred(self._look())
            looks.addBoth(self._looked)
            return looks
        waiting: defer.Deferred[None] = defer.Deferred()
        self._looks.addBoth(self._tell, waiting)
        return waiting

    def _noticed(self) -> None:
        self.look_for_master().addErrback(lambda reason: self.log.failure("group not checked", reason))

    def _looked(self, result: Result) -> Result:
        self._looks = None
        return result

    @staticmethod
    def _tell(result: Result, waiting: defer.Deferred[None]) -> Result:
        waiting.callback(None)
        return result

    async def _look(self) -> None:
        options = self._broker.options
        group = self._group
        addresses = await (group.all_addresses() if options.enable_slave_acting_master else group.addresses())
        if not addresses:
            return
        self._broker.min_broker_id = min(addresses)
        self._act(options.enable_slave_acting_master and addresses.get(options.broker_id) == self._broker.address)
        master = addresses.get(MASTER_ID)
        if master is None:
            self._set_master(None)
        elif self.synchronize.master_address != master:
            await self._registration.register()
            await self._sync()

    def _act(self, may_act: bool) -> None:
        """Act for the master, or cease to."""
        broker = self._broker
        acts = may_act and broker.min_broker_id == broker.options.broker_id
        if acts == broker.acts_as_master:
            return
        broker.acts_as_master = acts
        if acts:
            broker.offsets.diverge(int(broker.clock.seconds() * 1000))
            self.log.warn(
                "no name server knows the master: this slave acts for it, read-only. Start the master again:"
                " broker={b} id={i}",
                b=broker.options.broker_name, i=broker.options.broker_id,
            )  # fmt: skip
        else:
            self.log.info("this slave acts for its master no more: lowest id={i}", i=broker.min_broker_id)
        self._changing = defer.DeferredList([defer.maybeDeferred(tell, acts) for tell in self.on_acting])

    def _changed(self) -> defer.Deferred[None]:
        """Fires when what this slave noted in its master's place is on disk: the master's tables go to the same files."""
        waiting: defer.Deferred[None] = defer.Deferred()
        self._changing.addBoth(self._tell, waiting)
        return waiting
