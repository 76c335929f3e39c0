"""Promises to the clients of a simulated cluster, and their check.

The observer identifies each message by the text in its body. It gets sent, acknowledged and consumed messages, and reads the
stores at each start of a broker, each second, and at the end. Only messages that a broker of this configuration may lose in a
crash are removed from the list of owed ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from tests.simulation.given_back import given_back
from tests.simulation.nodes import BrokerNode
from tests.simulation.world import Broken, World
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.layouts.message_id import decode_offset_message_id
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC
from twisted_mq.storage.interfaces import IMessageStore

DELAY_SECONDS = {0: 0.0, 1: 1.0, 2: 5.0, 3: 10.0}
PLAIN, ORDERED = "Plain", "Ordered"
GROUPS = {"push": PLAIN, "lite": PLAIN, "orderly": ORDERED}
"""Consumer groups and the topics that they read."""
NEVER_CONSUMED = ("ROLLBACK", "NEVER")
GIVEN_UP_SECONDS = 10.0
"""No transaction is given up sooner: a broker asks 15 times, and each second at most."""
LONG_KNOWN_SECONDS = 45.0
"""Clients look for routes each 30 s."""
CLOCK_SECONDS = 0.01
"""A broker's clock counts milliseconds."""

Place = tuple[str, str, int, int]
"""Broker name, topic, queue id, queue offset."""


@attrs.define(eq=False)
class Sent:
    """A message that a producer tried to send; `place` and `physical_end` once it was acknowledged."""

    name: str
    topic: str
    sent_at: float
    delay_level: int = 0
    transaction: str = ""
    """COMMIT, ROLLBACK, LATER (a commit, when it is asked for the second time), NEVER (decided), or nothing."""
    place: Place | None = None
    physical_offset: int = -1
    owed: bool = False
    """Acknowledged, and lost by no fault that allows it."""
    given_up: bool = False
    """Its broker asked about its transaction for the last time, possibly before its producer handled the acknowledgement."""
    hidden: bool = False
    """In the place of one that was lost: a group that consumed that one may pass it over."""


class Observer:
    """`brokers` are all that may ever run, `members` how many consumers each group has."""

    def __init__(
        self, world: World, brokers: list[BrokerNode], members: Counter[str], *, sends_are_repeated: bool = False
    ) -> None:
        self._world = world
        self._brokers = brokers
        self._members = members
        self._groups = groups = {group: GROUPS[group] for group in members}
        self.sends_are_repeated = sends_are_repeated
        self.sent: dict[str, Sent] = {}
        self.seen: dict[str, set[str]] = {group: set() for group in groups}
        self.done: dict[str, set[str]] = {group: set() for group in groups}
        self.acknowledged = self.consumed = self.lost = 0
        self.broken = ""
        self.is_probed = False
        """True if the world is at its end and healthy: listeners need no time, and sent messages are consumed at once."""
        self.clocks_are_right = True
        self.machines_were_suspended = False
        self._links_are_sound = self._nodes_are_sound = True
        self._places: dict[Place, str] = {}
        self._gone: set[tuple[Place, str]] = set()
        self._in_order: dict[tuple[str, str, int], int] = defaultdict(int)
        self._committed: dict[tuple[str, str, int], int] = {}
        self._consumed_again: dict[tuple[str, str, int], int] = {}
        self._compared: dict[str, int] = defaultdict(int)
        self._reported: dict[str, int] = defaultdict(int)
        """Offset that a slave with synchronous flush had reported when its power was cut."""
        self._links_of_cut: dict[str, list[Any]] = defaultdict(list)
        """Links of a slave without synchronous flush when its power was cut: its master may keep them for long."""
        self._ends_before: dict[tuple[str, str, int], int] = defaultdict(int)
        self._lossy: set[str] = set()
        self._replaced: dict[str, float] = defaultdict(float)
        self._cut: dict[str, float] = {}
        """When the power of a slave was cut that does not flush before it reports."""
        self._expired: dict[str, int] = defaultdict(int)
        self._given_up: dict[str, int] = defaultdict(int)
        self._shown_by_slave: dict[tuple[Place, str], int] = {}
        """Offset in the log of what a slave gave to a consumer while no running master showed it."""
        self._on_disk_at_cuts: dict[str, list[tuple[float, int]]] = defaultdict(list)
        """When the power of each group's master was cut, with the end of what it had on disk."""
        self._may_be_lost_from: dict[str, list[tuple[float, int]]] = defaultdict(list)
        """When a power cut may have taken the end of each group's log, with the offset from which on."""
        self._may_have_lost: dict[str, float] = defaultdict(float)
        """When each group's master last started with less than it may have shown to consumers."""

    def _broken(self, text: str) -> None:
        """Keep a violation for the next check: a client that gets an exception would survive it."""
        self.broken = self.broken or text
        self._world.note(f"BROKEN {text}")

    # what clients say

    def sends(self, name: str, topic: str, delay_level: int = 0, transaction: str = "") -> None:
        self.sent[name] = Sent(name, topic, self._world.clock.now, delay_level, transaction)

    def was_acknowledged(self, name: str, broker: str, topic: str, queue_id: int, offset: int, message_id: str) -> None:
        """SEND_OK."""
        sent = self.sent[name]
        address, _, sent.physical_offset = decode_offset_message_id(message_id)
        if any(one.is_slave and one.name == address for one in self._brokers):
            self._broken(f"{name} was acknowledged by the slave {address}")
        sent.owed = True
        self.acknowledged += 1
        self._world.told("acknowledged", message=name, at=f"{broker}/{topic}/{queue_id}/{offset}")
        if sent.given_up or self._was_lost_meanwhile(sent, broker, address):
            self._let_go(sent)
            return
        self._check_copies(name, broker, sent.physical_offset)
        if not sent.delay_level and not sent.transaction:
            sent.place = (broker, topic, queue_id, offset)
            sent.hidden = offset < self._ends_before[broker, topic, queue_id]
            self._bind(sent.place, name)
        else:
            sent.place = (broker, "", 0, 0)

    def _was_lost_meanwhile(self, sent: Sent, broker_name: str, address: str) -> bool:
        """Return True if a fault took the message while its acknowledgement waited for a producer that stood still."""
        offset = sent.physical_offset
        if offset < self._expired[address]:
            return True
        may_be_lost = any(at >= sent.sent_at and offset >= end for at, end in self._may_be_lost_from[broker_name])
        return may_be_lost and not any(
            _name_in_log(one, offset) == sent.name for one in self._of(broker_name) if one.is_running
        )

    def _check_copies(self, name: str, broker_name: str, physical_offset: int) -> None:
        """Under synchronous replication a running slave has what is acknowledged, unless its disk was replaced since.

        A slave that does not flush before it reports may lose a message while its answer is under way.
        """
        group = [broker for broker in self._of(broker_name) if broker.is_running]
        if any(broker.is_sync_master for broker in group):
            for slave in group:
                if (
                    slave.is_slave
                    and slave.store.max_physical_offset() <= physical_offset
                    and self._world.clock.now > self._replaced[slave.name]
                    and self.sent[name].sent_at > self._cut.get(slave.name, -1.0)
                ):
                    self._broken(f"{name} was acknowledged at {physical_offset}, and {slave.name} has not got it")

    def was_consumed(self, group: str, queue: MessageQueue, message: MessageExt, consumer: str) -> None:
        """A listener was called with it."""
        name, place = name_of(message), _place(queue, message)
        self.consumed += 1
        self._world.told("consumed", message=name, by=f"{group}/{consumer}", at="/".join(map(str, place)))
        sent = self.sent.get(name)
        if sent is None:
            self._broken(f"{name} was consumed, and nobody sent it")
            return
        if queue.topic == sent.topic:
            if sent.sent_at < self._may_have_lost[queue.broker_name] and not self._is_there(place, name):
                self._gone.add((place, name))  # it was pulled before the loss
            self._note_shown_by_slave(place, name, message.physical_offset)
            self._bind(place, name)
            self._check_time(sent)
            self._note_repeat(group, place)
        if sent.transaction in NEVER_CONSUMED:
            self._broken(f"{name} is of a transaction to {sent.transaction}, and {group} consumed it")
        self.seen[group].add(name)

    def _is_there(self, place: Place, name: str) -> bool:
        """Return True if a running master shows the message at that place."""
        masters = [one for one in self._of(place[0]) if one.is_running and not one.is_slave]
        return any(_name_at(one, place) == name for one in masters)

    def _note_shown_by_slave(self, place: Place, name: str, physical_offset: int) -> None:
        """A master whose sends wait for copies sends its slaves what is not on its own disk yet, as Apache's does."""
        group = self._of(place[0])
        if any(one.is_sync_flush and one.is_sync_master for one in group) and not self._is_there(place, name):
            self._shown_by_slave[place, name] = physical_offset

    def _was_on_slaves_disk_only(self, place: Place, name: str) -> bool:
        """Return True if a consumer got it from a slave, and a power cut took it before its master's disk had it."""
        offset, sent = self._shown_by_slave.get((place, name), -1), self.sent[name]
        return any(at >= sent.sent_at and offset >= end for at, end in self._on_disk_at_cuts[place[0]])

    def _note_repeat(self, group: str, place: Place) -> None:
        """A slave that replaces its master may have an older offset: a consumer that starts there commits again too."""
        broker, topic, queue_id, offset = place
        committed = (broker, f"{topic}@{group}", queue_id)
        if offset < self._committed.get(committed, 0) and any(one.is_slave for one in self._of(broker)):
            self._may_go_back(committed, offset)

    def _may_go_back(self, committed: tuple[str, str, int], offset: int) -> None:
        """Expect that a committed offset goes back that far, once; the lowest of several reasons counts."""
        self._consumed_again[committed] = min(offset, self._consumed_again.get(committed, offset))

    def _of(self, broker_name: str) -> list[BrokerNode]:
        return [broker for broker in self._brokers if broker.broker_name == broker_name]

    def was_done(self, group: str, messages: Iterable[MessageExt]) -> None:
        """A listener came to an end with them, and need not get them again."""
        self.done[group].update(map(name_of, messages))

    def _bind(self, place: Place, name: str) -> None:
        """Check that a place has one message. A lost message may still be at a consumer that pulled it before."""
        if (place, name) in self._gone:
            return
        other = self._places.setdefault(place, name)
        if other != name:
            self._broken(f"{place} holds {name}, and held {other}")

    def _check_time(self, sent: Sent) -> None:
        waited = self._world.clock.now - sent.sent_at
        delay = DELAY_SECONDS[sent.delay_level] if sent.delay_level >= 0 else -sent.delay_level
        if self.clocks_are_right and waited < delay - CLOCK_SECONDS:
            self._broken(f"{sent.name} was consumed after {waited:.3f} s, its delay level is {sent.delay_level}")

    def was_consumed_in_order(self, group: str, queue: MessageQueue, message: MessageExt, consumer: str) -> None:
        """Like `was_consumed`, for a group that consumes each queue in order: no message may be skipped."""
        key = (group, queue.broker_name, queue.queue_id)
        if message.queue_offset > self._in_order[key]:
            self._note_expired()
        if message.queue_offset > self._in_order[key]:
            self._broken(f"{group} was given {_place(queue, message)}, not {self._in_order[key]}")
        self._in_order[key] = max(self._in_order[key], message.queue_offset + 1)
        self.was_consumed(group, queue, message, consumer)

    # what befalls brokers

    def links_fail(self) -> None:
        """Allow late messages, after later ones on another connection, and older offsets."""
        self._links_are_sound = False

    def nodes_fail(self) -> None:
        """Members of a group may not know of each other for a while; then two of them commit offsets of one queue."""
        self._nodes_are_sound = False

    def machine_is_suspended(self) -> None:
        """None of its clocks counts the time: it goes on with all that it believed."""
        self.nodes_fail()
        self.clocks_are_right = False
        self.machines_were_suspended = True

    def before_power_cut(self, broker: BrokerNode) -> None:
        """Let go of what may be lost now: under asynchronous flush what was not flushed."""
        if broker.is_slave:
            self.note_what_it_reported(broker)
            if not broker.is_sync_flush:
                self._cut[broker.name] = self._world.clock.now
        elif broker.is_running:
            cut = self._world.clock.now, broker.store.flushed_offset()
            self._on_disk_at_cuts[broker.broker_name].append(cut)
        if broker.is_slave or broker.is_sync_flush or not broker.is_running:
            return
        flushed = broker.store.flushed_offset()
        self._may_lose(broker.broker_name, flushed)
        for message in given_back(broker.store, flushed):
            self._let_go(self.sent[name_of(message)])

    def _may_lose(self, broker_name: str, end: int) -> None:
        self._may_be_lost_from[broker_name].append((self._world.clock.now, end))
        for sent in self.sent.values():
            if sent.place is not None and sent.place[0] == broker_name and sent.physical_offset >= end:
                self._let_go(sent)

    def _let_go(self, sent: Sent) -> None:
        if sent.owed:
            sent.owed = False
            self.lost += 1
            self._world.told("may-be-lost", message=sent.name)

    def has_all(self, slave: BrokerNode) -> bool:
        """Return True if a slave has the owed messages of its group. One that started with an empty disk lacks its master's older
        files."""
        first, end = slave.store.min_physical_offset(), slave.store.max_physical_offset()
        owed = (one for one in self.sent.values() if one.owed and one.place and one.place[0] == slave.broker_name)
        return first <= self._expired[slave.name] and all(first <= one.physical_offset < end for one in owed)

    def after_start(self, broker: BrokerNode, *, is_copy: bool = False) -> None:
        """Check that owed messages are there after a start; missing others are forgotten, so that their places can be used again.

        In a copy of the slave's store, messages may be missing that were consumed before the slave had them, and that were not
        acknowledged; in a master's own store those that were consumed at the slave before this disk had them.
        """
        if broker.is_slave:
            self._check_what_it_reported(broker)
            self._note_what_readers_lose(broker)
            return
        self._committed = {key: value for key, value in self._committed.items() if key[0] != broker.broker_name}
        if is_copy or not broker.is_sync_flush:
            self._may_have_lost[broker.broker_name] = self._world.clock.now
        ends: dict[tuple[str, int], int] = {}
        for place, name in list(self._places.items()):
            owner, topic, queue_id, offset = place
            if owner != broker.broker_name or not name:
                continue
            end = ends.setdefault((topic, queue_id), broker.store.max_offset_in_queue(topic, queue_id))
            if offset >= end:
                may = is_copy or not broker.is_sync_flush or self._was_on_slaves_disk_only(place, name)
                self._is_gone(place, name, may_be_consumed=may)

    def note_what_it_reported(self, slave: BrokerNode) -> None:
        """Note what a slave's master knows of it, now that its power is cut."""
        for master in self._brokers:
            if master.is_running and not master.is_slave and master.broker_name == slave.broker_name:
                links = [one for one in master.service.controller.ha.accept.connections if one.host == slave.name]
                self._reported[slave.name] = max((one.slave_ack_offset for one in links), default=0)
                self._links_of_cut[slave.name] = [] if slave.is_sync_flush else links

    def _check_what_it_reported(self, slave: BrokerNode) -> None:
        """A slave with synchronous flush reports what is on its disk: no power cut takes that.

        What another one lost comes again, and is compared again.
        """
        end, reported = slave.store.max_physical_offset(), max(self._compared[slave.name], self._reported[slave.name])
        if slave.is_sync_flush and end < reported:
            self._broken(
                f"{slave.name} acknowledged {reported} under SYNC_FLUSH, and its log ends at {end} after a restart"
            )
        self._compared[slave.name] = min(self._compared[slave.name], end)

    def _note_what_readers_lose(self, slave: BrokerNode) -> None:
        """A reader at a slave that lost its log's end gets the new end, and continues there."""
        for key, offset in self._committed.items():
            topic = key[1].rpartition("@")[0]
            end = slave.store.max_offset_in_queue(topic, key[2]) if key[0] == slave.broker_name else offset
            if end < offset:
                self._may_go_back(key, end)

    def _is_gone(self, place: Place, name: str, *, may_be_consumed: bool) -> None:
        sent = self.sent[name]
        if sent.owed and sent.place == place:
            self._broken(f"{name} was acknowledged at {place}, and is lost")
        if not may_be_consumed and any(name in seen for seen in self.seen.values()):
            self._broken(f"{name} was consumed at {place}, and is lost")
        owner, topic, queue_id, offset = place
        self._ends_before[owner, topic, queue_id] = max(self._ends_before[owner, topic, queue_id], offset + 1)
        self._lossy.add(owner)
        del self._places[place]
        self._gone.add((place, name))

    # each second

    def look(self) -> None:
        """Compare logs, and offsets with what they were. Raises Broken, as all that follows."""
        if self.broken:
            raise Broken(self.broken)
        self._note_expired()
        for broker in self._brokers:
            if broker.is_running and not broker.is_slave:
                self._look_at_offsets(broker)
                self._look_at_given_up(broker)
        for master, slave in self._pairs():
            self._compare(master, slave)

    def _pairs(self) -> Iterator[tuple[BrokerNode, BrokerNode]]:
        running = [broker for broker in self._brokers if broker.is_running]
        masters = {broker.broker_name: broker for broker in running if not broker.is_slave}
        for slave in running:
            if slave.is_slave and slave.broker_name in masters:
                yield masters[slave.broker_name], slave

    def _look_at_offsets(self, broker: BrokerNode) -> None:
        for key, queues in broker.service.controller.offsets.offsets.items():
            for queue_id, offset in queues.items():
                place = (broker.broker_name, key, queue_id)
                before = self._committed.get(place, offset)
                lowest = before if offset == before else self._consumed_again.pop(place, before)
                if (
                    offset < min(before, lowest)
                    and self._may_not_go_back(key)
                    and broker.broker_name not in self._lossy
                ):
                    raise Broken(f"the offset of {place} went back from {before} to {offset}")
                self._committed[place] = offset

    def _note_expired(self) -> None:
        """Nothing is expected of what brokers deleted, for the room on their disks."""
        for broker in self._brokers:
            if not broker.is_running or broker.is_slave:
                continue
            first = broker.store.min_physical_offset()
            if first > self._expired[broker.name]:
                if not broker.disk.was_scarce:
                    self._broken(f"{broker.name} deleted what lies before {first}, and its disk had room all the time")
                self._expired[broker.name] = first
                for sent in self.sent.values():
                    if sent.place is not None and sent.place[0] == broker.broker_name and sent.physical_offset < first:
                        self._let_go(sent)
                        sent.hidden = True
            if first:
                for group, topic in self._groups.items():
                    for queue_id in broker.store.queue_ids(topic):
                        key = (group, broker.broker_name, queue_id)
                        self._in_order[key] = _first_left(broker.store, topic, queue_id, self._in_order[key])

    def _look_at_given_up(self, broker: BrokerNode) -> None:
        """Transactions that the broker asked about for the last time."""
        end = broker.store.max_offset_in_queue(CHECK_MAX_TIME_TOPIC, 0)
        if end == self._given_up[broker.name]:
            return
        self._given_up[broker.name] = end
        for _, message in messages_of(broker, [CHECK_MAX_TIME_TOPIC]):
            sent = self.sent[name_of(message)]
            waited = self._world.clock.now - sent.sent_at
            if self.clocks_are_right and waited < GIVEN_UP_SECONDS:
                raise Broken(f"the transaction of {sent.name} was given up after {waited:.3f} s")
            self._let_go(sent)
            sent.given_up = sent.hidden = True

    def _may_not_go_back(self, topic_and_group: str) -> bool:
        alone = self._members.get(topic_and_group.rpartition("@")[2], 1) == 1
        return self._links_are_sound and (self._nodes_are_sound or alone)

    def _compare(self, master: BrokerNode, slave: BrokerNode) -> None:
        """Byte by byte, what both have and no earlier look compared, as far as the slave acknowledged it.

        A slave that does not flush before it reports may lose what it reported before its power was cut.
        """
        before, now = self._links_of_cut[slave.name], master.service.controller.ha.accept.connections
        links = [one for one in now if all(one is not other for other in before)]
        acknowledged = max((one.slave_ack_offset for one in links), default=-1)
        if acknowledged <= self._compared[slave.name]:
            return
        at = max(self._compared[slave.name], slave.store.min_physical_offset(), master.store.min_physical_offset())
        different = first_difference(master.store, slave.store, at, acknowledged)
        if different is None:
            self._compared[slave.name] = acknowledged
        else:
            raise Broken(f"{slave.name} acknowledged {acknowledged}, and its log differs from {different} on")

    def forget_comparison(self, slave: BrokerNode) -> None:
        """Its log is another one now; an acknowledgement of the old one may still be under way."""
        self._replaced[slave.name] = self._world.clock.now + 30.0
        self._compared[slave.name] = self._reported[slave.name] = 0

    # the end

    def missing(self) -> list[str]:
        """Return owed messages that some group of the topic has not consumed, or that lost their place and have no other one
        yet."""
        if not self._lossy:
            return self._not_seen()
        there = set()
        for place, message in self._all_messages():
            there.add(name_of(message))
            if place[3] < self._ends_before[place[:3]]:
                self.sent[name_of(message)].hidden = True
        return self._not_seen() + [
            f"{sent.name} by its queue"
            for sent in self.sent.values()
            if sent.owed and sent.transaction not in NEVER_CONSUMED and sent.name not in there
        ]

    def late_probes(self, first: int) -> list[str]:
        """Return the messages sent from number `first` on that were acknowledged, with each group that did not consume them."""
        return [
            f"{sent.name} by {group}"
            for sent in list(self.sent.values())[first:]
            for group, seen in self.seen.items()
            if sent.owed and self._is_for(group, sent.topic) and sent.name not in seen
        ]

    def is_long_known(self, topic: str) -> bool:
        """Return True if consumers know the topic by now."""
        now = self._world.clock.now
        return any(
            sent.topic == topic and sent.place and sent.sent_at < now - LONG_KNOWN_SECONDS
            for sent in self.sent.values()
        )

    def _is_for(self, group: str, topic: str) -> bool:
        return self._groups[group] == topic

    def _not_seen(self) -> list[str]:
        return [
            f"{sent.name} by {group}"
            for sent in self.sent.values()
            for group, topic in self._groups.items()
            if sent.owed
            and not sent.hidden
            and topic == sent.topic
            and sent.transaction not in NEVER_CONSUMED
            and sent.name not in self.done[group]
        ]

    def _all_messages(self) -> Iterator[tuple[Place, MessageExt]]:
        for broker in self._brokers:
            if not broker.is_slave:
                yield from messages_of(broker, sorted({*self._groups.values()}))

    def check_queues(self) -> None:
        """Read all queues of all masters: what is owed is there once."""
        found: dict[str, list[Place]] = defaultdict(list)
        for place, message in self._all_messages():
            found[name_of(message)].append(place)
            self._bind(place, name_of(message))
        for sent in self.sent.values():
            places = found.get(sent.name, [])
            if sent.owed and sent.transaction not in NEVER_CONSUMED and not places:
                raise Broken(f"{sent.name} was acknowledged, and is in no queue")
            if sent.transaction in NEVER_CONSUMED and places:
                raise Broken(f"{sent.name} is of a transaction to {sent.transaction}, and is in {places}")
            if sent.owed and len(places) > 1 and not self.sends_are_repeated:
                raise Broken(f"{sent.name} was sent once, and is in {places}")


def _first_left(store: IMessageStore, topic: str, queue_id: int, offset: int) -> int:
    """Return the first offset from that one on whose record is in the log. Queues are trimmed after the log, in slices."""
    offset, first = max(offset, store.min_offset_in_queue(topic, queue_id)), store.min_physical_offset()
    for physical_offset, _size, _tags in store.queue_entries(topic, queue_id, offset, 1 << 10):
        if physical_offset >= first:
            break
        offset += 1
    return offset


def messages_of(broker: BrokerNode, topics: list[str]) -> Iterator[tuple[Place, MessageExt]]:
    """All messages in the queues of these topics."""
    store = broker.store
    for topic in topics:
        for queue_id in store.queue_ids(topic):
            offset, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
            while offset < end:
                result: Any = store.get_message(topic, queue_id, offset, 32, 1 << 20, None)
                for record in result.records:
                    message = decode_message(record)
                    yield (broker.broker_name, topic, queue_id, message.queue_offset), message
                if result.next_begin_offset <= offset:
                    raise Broken(
                        f"{broker.name} does not read {topic}/{queue_id} from {offset} to {end}: {result.status}"
                    )
                offset = result.next_begin_offset


def _name_at(broker: BrokerNode, place: Place) -> str:
    """Return the name of the message at a place; empty if the broker shows none there."""
    _, topic, queue_id, offset = place
    result: Any = broker.store.get_message(topic, queue_id, offset, 1, 1 << 20, None)
    messages = [decode_message(record) for record in result.records]
    return next((name_of(one) for one in messages if one.queue_offset == offset), "")


def _name_in_log(broker: BrokerNode, physical_offset: int) -> str:
    """Return the name of the message at an offset of a broker's log; empty if there is none."""
    record = broker.store.look_message(physical_offset)
    return "" if record is None else name_of(decode_message(record))


def _place(queue: MessageQueue, message: MessageExt) -> Place:
    """Return the place that it was pulled from: a retried message comes from another topic than its own."""
    return queue.broker_name, queue.topic, queue.queue_id, message.queue_offset


def name_of(message: MessageExt) -> str:
    """Return the name that its producer wrote at the begin of its body."""
    return message.body.split(b" ", 1)[0].decode()


def first_difference(ours: Any, theirs: Any, at: int, end: int) -> int | None:
    """Return the first difference or missing byte of two stores' logs between these offsets; None if they are equal."""
    while at < end:
        one, other = (bytes(store.read_log(at, end - at) or b"") for store in (ours, theirs))
        size = min(len(one), len(other))
        if not size or one[:size] != other[:size]:
            return at + next((place for place in range(size) if one[place] != other[place]), 0)
        at += size
    return None
