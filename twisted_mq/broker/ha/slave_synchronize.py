"""Copies a master's tables to its slave (Apache: SlaveSynchronize).

Topics and groups are copied when the master's data version differs, with that version; offsets and the rest each time. A
table that cannot be fetched does not delay the others.

Offsets are copied only as far as the log here goes. Those that were lowered are soon asked for again, until the log has
the messages. So a slave's store that replaces its master's has no offset past its own log's end. The offsets of the
broker's own groups, and those of delayed messages, wait for all that the master's log has (see master_progress.py).

Offsets that consumers committed here while the master was away are sent back to it: only those that were committed at
this slave, are ahead of the master's, and count messages that the master's log has, too. Apache forgets them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol, TypeVar

import attrs

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.ha.client import Following
from twisted_mq.broker.ha.common_log import NOWHERE, CommonLog, place_before
from twisted_mq.broker.ha.master_progress import MasterProgress, end_of_log
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    DelayOffsetSerializeWrapper,
    MessageRequestModeSerializeWrapper,
    SubscriptionGroupWrapper,
    TimerMetricsSerializeWrapper,
    TopicConfigAndMappingSerializeWrapper,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.headers import UpdateConsumerOffsetRequestHeader
from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingConnectError, RemotingError
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR
from twisted_mq.storage.tables.small_tables import DelayOffsetTable

TIMEOUT_SECONDS = 3.0

Offsets = dict[str, dict[int, int]]
Row = tuple[str, int, int]
"""A key (topic@group), a queue id and an offset."""
Table = TypeVar("Table")

_TOPICS = functools.partial(decode_body, TopicConfigAndMappingSerializeWrapper)
_GROUPS = functools.partial(decode_body, SubscriptionGroupWrapper)
_DELAYS = functools.partial(decode_body, DelayOffsetSerializeWrapper)
_MODES = functools.partial(decode_body, MessageRequestModeSerializeWrapper)
_METRICS = functools.partial(decode_body, TimerMetricsSerializeWrapper)
_OFFSETS = functools.partial(decode_body, ConsumerOffsetSerializeWrapper)


class SlaveParts(Protocol):
    """The parts of the broker whose tables are copies."""

    options: BrokerOptions
    topics: TopicConfigManager
    static_topics: StaticTopics
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    tables: BrokerTables
    store: IMessageStore
    in_thread: InThread

    @property
    def address(self) -> str: ...


@attrs.define(eq=False)
class SlaveSynchronize:
    """Copies tables from `master_address`, host:port; nothing happens while that is None.

    `delays` is the table of delay offsets, `save_metrics` and `save_checkpoint` write the timer's files; `following` is
    HAClient's.
    """

    broker: SlaveParts
    invoke: Invoke
    delays: DelayOffsetTable
    save_metrics: Callable[[TimerMetricsSerializeWrapper], object]
    save_checkpoint: Callable[[bytes], object]
    following: Callable[[], Following | None]
    master_address: str | None = None
    _synced_offsets: Offsets = attrs.field(factory=dict)
    _ahead: list[Row] = attrs.field(factory=list)
    _lags: bool = False
    """True if the last copy of the offsets named messages that the log here did not have yet."""
    _failed: set[int] = attrs.field(factory=set)
    _refused: set[str] = attrs.field(factory=set)
    _own_of_master: Offsets = attrs.field(factory=dict)
    """The offsets of the broker's own groups in the master's last answer."""
    _progress: MasterProgress = attrs.field(init=False)
    log = Logger()

    def __attrs_post_init__(self) -> None:
        self._progress = MasterProgress(self.delays, self.broker.offsets)
        self._note_offsets()

    def set_master_address(self, address: str | None) -> None:
        """Set the master's address for clients; None without a master."""
        if address == self.broker.address:
            address = None
        if address != self.master_address:
            self.log.info("master's address: old={o} new={n}", o=self.master_address, n=address)
            self.master_address = address

    async def sync_all(self) -> bool:
        """Copy every table. Returns True if all were copied."""
        followed, self._own_of_master = self.following(), {}
        results = [
            await self._sync(RequestCode.GET_ALL_TOPIC_CONFIG, _TOPICS, self._take_topics),
            await self.sync_offsets(),
        ]
        sync = self._sync
        results += [
            await self._sync_progress(followed),
            await sync(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, _GROUPS, self._take_groups),
            await sync(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, _MODES, self._take_modes),
        ]
        if self.broker.options.timer_wheel_enable:
            results.append(await sync(RequestCode.GET_TIMER_METRICS, _METRICS, self.save_metrics))
        return all(results)

    @property
    def wants_offsets(self) -> bool:
        """Return True if the offsets have to be copied before all else, because some here are not the master's."""
        return self._lags or self.has_own_offsets

    @property
    def has_own_offsets(self) -> bool:
        """Return True if consumers committed here since the last copy of the master's offsets."""
        return self.broker.offsets.offsets != self._synced_offsets

    async def sync_offsets(self) -> bool:
        """Copy only the offsets, and send back those that are ahead."""
        done = await self._sync(RequestCode.GET_ALL_CONSUMER_OFFSET, _OFFSETS, self._take_offsets)
        ahead, self._ahead = self._ahead, []
        answers = True
        for key, queue_id, offset in await self._counted_alike(ahead):
            answers = answers and await self._hand_back(key, queue_id, offset)
            if not answers:
                self._not_handed_back(key, queue_id)
        return done

    async def _counted_alike(self, ahead: list[Row]) -> list[Row]:
        """Return the offsets before which the master's log has the same message. The next copy tries the others again."""
        store, master = self.broker.store, self.master_address
        if not ahead or master is None:
            return ahead
        places = [
            place_before(store, key.partition(TOPIC_GROUP_SEPARATOR)[0], queue, offset) for key, queue, offset in ahead
        ]
        try:
            same = await CommonLog(store, self.invoke, master).last(sorted({*places} - {NOWHERE}))
        except RemotingError as error:
            same = NOWHERE
            self.log.debug("log not compared with the master's: {e}", e=error)
        alike = []
        for row, place in zip(ahead, places, strict=True):
            if NOWHERE < place <= same:
                alike.append(row)
            else:
                self._not_handed_back(row[0], row[1])
                self._refuse(row[0], row[1], "the master's log is not known to have the message before it")
        return alike

    def settle_progress(self) -> None:
        """Use the master's last offsets of delayed messages and of its own groups, if this log has them now."""
        taken = self._progress.settle(self.following(), self.broker.store.flushed_offset())
        self._synced_offsets.update({key: dict(self.broker.offsets.offsets[key]) for key in taken})

    async def _sync_progress(self, followed: Following | None) -> bool:
        """Ask how far the master delivered, unless its last answer still waits.

        `followed` is the connection to it when it was asked for its own groups' offsets.
        """
        progress, own = self._progress, self._own_of_master
        self.settle_progress()
        if progress.waits:
            return True
        end = self.broker.store.max_physical_offset()
        came = await self._sync(
            RequestCode.GET_ALL_DELAY_OFFSET, _DELAYS, lambda theirs: progress.hold(theirs, own, end)
        )
        if progress.waits and self.following() is not None:
            came = await self._sync(
                RequestCode.GET_BROKER_RUNTIME_INFO, end_of_log, lambda end: self._told_end(end, followed)
            )
        return came

    def _told_end(self, end: int, followed: Following | None) -> None:
        following = self.following()
        is_same = following is not None and followed is not None and following.link is followed.link
        self._progress.told_end(end, following, with_own=is_same)

    async def sync_timer_checkpoint(self) -> bool:
        """Copy the progress of the master's timer, which is asked for more often than the rest."""
        return await self._sync(RequestCode.GET_TIMER_CHECK_POINT, bytes, self.save_checkpoint)

    async def _sync(self, code: int, read: Callable[[bytes], Table], take: Callable[[Table], object]) -> bool:
        """Ask for a table and take it over, parsed in a thread because it may be long. Returns True on success."""
        master = self.master_address
        if master is None:
            return False
        try:
            answer = await self.invoke(master, RemotingCommand.request(code), TIMEOUT_SECONDS)
            if answer.code != 0:
                raise BrokerError(answer.code, answer.remark or "")
            take(await self.broker.in_thread(read, answer.body))
        except (RemotingError, ProtocolError, BrokerError, OSError) as error:
            if code not in self._failed:
                self._failed.add(code)
                self.log.warn("table not copied from master, retrying: code={c} {m} {e}", c=code, m=master, e=error)
            return False
        self._failed.discard(code)
        return True

    # tables

    def _take_topics(self, theirs: TopicConfigAndMappingSerializeWrapper) -> None:
        static = self.broker.static_topics
        if theirs.mapping_data_version != static.data_version:
            static.replace_all(theirs.topic_queue_mapping_detail_map, theirs.mapping_data_version)
        if theirs.data_version != self.broker.topics.data_version:
            self.broker.topics.replace_all(theirs.topic_config_table, theirs.data_version)
            self.log.info("topics copied from master: topics={n}", n=len(theirs.topic_config_table))

    def _take_groups(self, theirs: SubscriptionGroupWrapper) -> None:
        if theirs.data_version != self.broker.groups.data_version:
            self.broker.groups.replace_all(theirs.subscription_group_table, theirs.data_version)
            self.log.info("groups copied from master: groups={n}", n=len(theirs.subscription_group_table))

    def _take_modes(self, theirs: MessageRequestModeSerializeWrapper) -> None:
        self.broker.tables.request_modes.modes = {
            topic: dict(row) for topic, row in theirs.message_request_mode_map.items()
        }
        self.broker.tables.request_modes.save()

    # offsets

    def _take_offsets(self, theirs: ConsumerOffsetSerializeWrapper) -> None:
        ahead = self._ahead_of(theirs.offset_table)
        own = self._own_of_master = {key: dict(row) for key, row in theirs.offset_table.items() if _is_brokers(key)}
        merged = {key: dict(queues) for key, queues in theirs.offset_table.items() if key not in own}
        for key, queue_id, offset in ahead:
            merged.setdefault(key, {})[queue_id] = offset
        self._lags = not self.broker.offsets.merge(merged, theirs.data_version)
        self._note_offsets()
        self._ahead = ahead

    def _ahead_of(self, theirs: Offsets) -> list[Row]:
        """Return the offsets that were committed here since the last copy and are ahead of the master's."""
        found = []
        for key, queues in self.broker.offsets.offsets.items():
            if _is_brokers(key):
                continue  # no request moves it: a master asks for it before it registers
            before, master = self._synced_offsets.get(key, {}), theirs.get(key, {})
            for queue_id, offset in queues.items():
                if offset != before.get(queue_id) and offset > master.get(queue_id, -1):
                    found.append((key, queue_id, offset))
        return found

    def _note_offsets(self) -> None:
        self._synced_offsets = {key: dict(queues) for key, queues in self.broker.offsets.offsets.items()}

    def _not_handed_back(self, key: str, queue_id: int) -> None:
        """Forget the copied offset, so that the next copy tries again."""
        self._synced_offsets.get(key, {}).pop(queue_id, None)

    async def _hand_back(self, key: str, queue_id: int, offset: int) -> bool:
        """Commit an offset at the master. Returns True if it answers; if that fails, the next copy tries again."""
        topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset
        )
        commit = RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header))
        try:
            code = await self._ask_master(commit)
            if code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                await self._make_group(group)
                code = await self._ask_master(commit)
            if code != ResponseCode.SUCCESS:
                raise BrokerError(code, "refused")
        except (RemotingError, BrokerError) as error:
            self._not_handed_back(key, queue_id)
            self._refuse(key, queue_id, str(error))
            return isinstance(error, BrokerError)
        self._refused.discard(key)
        self.log.info("offset returned to master: group={g} topic={t} queue={q} offset={o}", g=group, t=topic,
                      q=queue_id, o=offset)  # fmt: skip
        return True

    def _refuse(self, key: str, queue_id: int, why: str) -> None:
        if key not in self._refused:
            self._refused.add(key)
            self.log.warn("offset not returned to master, retrying: key={k} queue={q} {w}", k=key, q=queue_id, w=why)

    async def _make_group(self, group: str) -> None:
        """Create a group at the master that came into being here."""
        config = self.broker.groups.find(group)
        if config is not None:
            await self._ask_master(
                RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(config))
            )

    async def _ask_master(self, command: RemotingCommand) -> int:
        """Return the code of the master's answer. Raises RemotingError."""
        if self.master_address is None:
            raise RemotingConnectError("no master")
        answer = await self.invoke(self.master_address, command, TIMEOUT_SECONDS)
        return answer.code


def _is_brokers(key: str) -> bool:
    return key.rpartition(TOPIC_GROUP_SEPARATOR)[2] in BROKERS_GROUPS
