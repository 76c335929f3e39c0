"""Promises of ordered broker groups, and their check.

Messages from one producer process to one queue are a line, numbered from 1. Each consumer group gets the acknowledged and other
stored messages of a line in order. Repeats are allowed at any time, but no message comes for the first time after a later one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from twisted.internet.interfaces import IDelayedCall

from tests.simulation.coordinator import CoordinatorNode
from tests.simulation.nodes import BrokerNode
from tests.simulation.observer import LONG_KNOWN_SECONDS, Observer, Place, Sent, name_of
from tests.simulation.world import Broken, World
from twisted_mq.broker.ordering.agent import OrderAgent
from twisted_mq.broker.ordering.units import BrokerUnit
from twisted_mq.coordination.tree import Change
from twisted_mq.ordering.documents import decode_lists
from twisted_mq.ordering.health import MASTER, SLAVE
from twisted_mq.ordering.lists import Lists, OrderedTopic
from twisted_mq.ordering.paths import member_path, unit_path
from twisted_mq.ordering.rules import fault_of
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.order_mark import OrderMark
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED
from twisted_mq.storage.tools.order_audit import GAP, audit_order
from twisted_mq.storage.tools.order_marks import read_marks

IN_A_SEND = 4
"""A message is stored and acknowledged within about so many deliveries."""

LATE_ANSWER_SECONDS = 90.0
"""An acknowledgement may come so late: its reader was paused."""

LEASE_SECONDS = 3.0
"""For half of a session's time a process is sure of its session. The time of a suspension is not counted."""

WHOLE = "Whole"
"""The topic that is ordered as a whole."""
APACHES_GROUP = "orderly"
"""The consumer group of Apache's clients, which read that topic alone."""


LATE_GROUP = "late"
"""A consumer group that joins in the middle: it gets what is sent once all brokers count it."""


def reads(group: str, topic: str) -> bool:
    """Return True if a consumer group subscribes to an ordered topic."""
    return topic == WHOLE or group != APACHES_GROUP


class OrderedObserver(Observer):
    """`members` are the consumer groups, with how many consumers each has."""

    def __init__(
        self,
        world: World,
        brokers: list[BrokerNode],
        members: Counter[str],
        coordinator: CoordinatorNode,
        topics: list[OrderedTopic],
    ) -> None:
        super().__init__(world, brokers, Counter(), sends_are_repeated=True)
        self._members = members
        self.seen = {group: set() for group in members}
        self.done = {group: set() for group in members}
        self._coordinator = coordinator
        self._units = [(one, unit) for one in topics for unit in one.units]
        self.at_next_send: Callable[[], None] | None = None
        """Called once, when the next message is on its way."""
        self._in_a_send: dict[Callable[[], None], IDelayedCall] = {}
        """Calls that wait for their moment in a send that has begun."""
        self.late_since = float("inf")
        """When the late group counted everywhere."""
        self._lines: dict[str, list[Sent]] = defaultdict(list)
        self._began_with: dict[str, int] = defaultdict(int)
        """End of a broker's log at its last start."""
        self._left_in_the_dark: dict[str, int] = {}
        """End of the log on the disk of a broker after a power cut, until it is started."""
        self._promoted: dict[str, OrderAgent | None] = {}
        """The master's process that became the head, by unit."""
        self._unanswered: dict[str, None] = {}
        self._highest: dict[tuple[str, str], int] = defaultdict(int)
        self._marks: dict[tuple[str, str, int], tuple[int, int]] = {}
        self._calls: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
        """The epochs and queues of the listener's open calls, by process and unit."""
        self._lists: dict[str, Lists] = {unit_path(one.topic, unit): Lists() for one, unit in self._units}
        self._lists_changed_at = world.clock.now
        coordinator.ensemble.tree.told.append(self._changed)

    # what clients say

    def sends_in_order(self, line: str, topic: str, number: int) -> str:
        """The name of the message."""
        name = f"{line}/{number}"
        self.sends(name, topic)
        self._lines[line].append(self.sent[name])
        self._unanswered[name] = None
        if self.at_next_send is not None:
            do, self.at_next_send = self.at_next_send, None
            delay = self._world.network.next_delay() * IN_A_SEND
            self._in_a_send[do] = self._world.clock.callLater(delay, self._do_in_a_send, do)
        return name

    def _do_in_a_send(self, do: Callable[[], None]) -> None:
        del self._in_a_send[do]
        do()

    def forget(self, do: Callable[[], None]) -> None:
        """Cancel a call of `at_next_send`, also where its send has begun."""
        if self.at_next_send is do:
            self.at_next_send = None
        waiting = self._in_a_send.pop(do, None)
        if waiting is not None:
            waiting.cancel()

    def was_not_sent(self, name: str) -> None:
        """Its producer gave it up."""
        self._unanswered.pop(name, None)

    def producer_is_gone(self, host: str) -> None:
        """Forget the pending sends of a producer whose process ended."""
        self._unanswered = {name: None for name in self._unanswered if not name.startswith(host)}

    def was_acknowledged(self, name: str, broker: str, topic: str, queue_id: int, offset: int, message_id: str) -> None:
        self._unanswered.pop(name, None)
        super().was_acknowledged(name, broker, topic, queue_id, offset, message_id)
        line, number = _place_in_line(name)
        for group, seen in self.seen.items():
            if (
                self.sent[name].owed
                and self._highest[group, line] > number
                and name not in seen
                and self._expects(group, self.sent[name])
                and self._keeps_order(line)
            ):
                self._broken(f"{name} was acknowledged, and {group} has passed it over")

    def was_consumed_in_order(self, group: str, queue: MessageQueue, message: MessageExt, consumer: str) -> None:
        name = name_of(message)
        if name in self.sent and name not in self.seen[group]:
            self._is_next(group, queue, message, name)
            self._check_held(queue.broker_name, name, message.physical_offset)
        self.was_consumed(group, queue, message, consumer)

    @contextmanager
    def call_of_listener(self, process: str, topic: str, messages: list[MessageExt]) -> Iterator[None]:
        """Note one call while it lasts. Calls for two terms of a unit do not overlap in one process, nor two for a queue."""
        mark, queue_id = OrderMark.decode(messages[0].properties.get(PROPERTY_ORDERED, "")), messages[0].queue_id
        open_calls = self._calls[process, topic, "" if topic == WHOLE else str(queue_id)]
        call = mark.epoch, queue_id
        if any(epoch != mark.epoch or queue == queue_id for epoch, queue in open_calls):
            self._broken(f"{process} was given messages of epoch and queue {call} while it had some of {open_calls}")
        open_calls.append(call)
        try:
            yield
        finally:
            open_calls.remove(call)

    def _is_next(self, group: str, queue: MessageQueue, message: MessageExt, name: str) -> None:
        line, number = _place_in_line(name)
        highest, self._highest[group, line] = self._highest[group, line], max(number, self._highest[group, line])
        keeps_order = self._keeps_order(line)
        if number < highest and keeps_order:
            self._broken(f"{group} was given {name} behind {line}/{highest}")
        for passed in self._lines[line][highest : number - 1] if keeps_order else ():
            if passed.owed and passed.name not in self.seen[group] and self._expects(group, passed):
                self._broken(f"{group} was given {name}, and has not seen {passed.name}, which was acknowledged")
        mark, place = (
            OrderMark.decode(message.properties.get(PROPERTY_ORDERED, "")),
            (group, queue.topic, queue.queue_id),
        )
        before = self._marks.get(place, (0, 0))
        now = mark.epoch, mark.leader or before[1]  # a plain producer follows no leader
        if now < before or now[1] < before[1]:
            self._broken(f"{group} was given {name} of epoch and leader {now}, behind {before}")
        self._marks[place] = now

    def _expects(self, group: str, sent: Sent) -> bool:
        """Return True if a group must get the message."""
        return group != LATE_GROUP or sent.sent_at >= self.late_since

    def _keeps_order(self, line: str) -> bool:
        """Return whether clocks are right enough for the order of a plain producer.

        It names no epoch. A head that goes on after a suspension takes its message into an older term than that of its last one.
        """
        return not (self.machines_were_suspended and "/key-" in line)

    def _check_held(self, group: str, name: str, physical_offset: int) -> None:
        """Nothing is handed out that the slave lacks, but what a master had when it started."""
        master, slave = self._group(group)
        if (
            slave.is_running
            and slave.store.max_physical_offset() <= physical_offset >= self._began_with[master.name]
            and self._world.clock.now > self._replaced[slave.name]
        ):
            self._broken(f"{name} was handed out at {physical_offset}, and {slave.name} has not got it")

    def _group(self, name: str) -> tuple[BrokerNode, BrokerNode]:
        """Master and slave."""
        return tuple(sorted((one for one in self._brokers if one.broker_name == name), key=lambda one: one.is_slave))  # type: ignore[return-value]

    # faults of brokers

    def before_power_cut(self, broker: BrokerNode) -> None:
        """Forget messages that may be lost now: those that are not on this broker's disk, nor at its partner."""
        if not broker.is_running:
            return
        if broker.is_slave:
            self.note_what_it_reported(broker)
        self._replaced[broker.name] = self._world.clock.now + LATE_ANSWER_SECONDS
        on_disk, end = broker.store.flushed_offset(), broker.store.max_physical_offset()
        if on_disk < end:
            self._lossy.add(broker.broker_name)
        if broker.is_sync_flush and not broker.is_slave:
            return
        partner = next(one for one in self._group(broker.broker_name) if one is not broker)
        held = self._left_in_the_dark.get(partner.name, partner.store.max_physical_offset())
        self._left_in_the_dark[broker.name] = on_disk
        kept = max(held, on_disk)
        self._may_lose(broker.broker_name, kept)
        self._places = {place: name for place, name in self._places.items() if self.sent[name].owed}

    def _bind(self, place: Place, name: str) -> None:
        """A message that may be lost may still be consumed by a client that got it before."""
        if self.sent[name].owed:
            super()._bind(place, name)

    def after_start(self, broker: BrokerNode, *, is_copy: bool = False) -> None:
        """Check that the other broker has the messages that this one lost."""
        if broker.is_slave:
            self._check_what_it_reported(broker)
        else:
            self._committed = {key: value for key, value in self._committed.items() if key[0] != broker.broker_name}
        self._left_in_the_dark.pop(broker.name, None)
        self._began_with[broker.name] = broker.store.max_physical_offset()

    # what the coordinator has

    def lists(self, topic: str, unit: str) -> Lists:
        """As they are there."""
        return self._lists[unit_path(topic, unit)]

    def _changed(self, changes: Sequence[Change]) -> None:
        for _, path in changes:
            if path in self._lists:
                self._lists_changed(path)

    def _lists_changed(self, path: str) -> None:
        tree = self._coordinator.ensemble.tree
        node = tree[path]
        assert node is not None, f"{path} is gone"
        before, lists = self._lists[path], decode_lists(path, node.data)
        self._lists[path] = lists
        self._lists_changed_at = self._world.clock.now
        self._world.told("lists", unit=path, lists=node.data.decode())
        if fault_of(lists) is not None:
            self._broken(f"{path}: {fault_of(lists)}")
        if lists.head is not None and lists.epoch != before.epoch:
            missing = [one for one in (MASTER, SLAVE) if tree[member_path(lists.head, one)] is None]
            if missing or lists.epoch != before.epoch + 1:
                self._broken(f"{path}: head {lists} after {before}, without the brokers {missing}")
            self._promoted[path] = self._group(lists.head)[MASTER].agent

    # each second

    def look(self) -> None:
        super().look()
        for host, client in self._coordinator.clients_now():
            if client.holds() and self._is_over(host.name, client.session_id):
                raise Broken(f"{host.name} is sure of its session, which is over")
        for one, unit in self._units:
            self._look_at_heads(one.topic, unit)

    def _is_over(self, host: str, session: int) -> bool:
        """Return whether a session is over, and its process can know that: the lease of a host that was suspended lasts on."""
        one = self._world.network.host(host)
        is_misled = one.is_suspended or self._world.clock.now < one.woken_at + LEASE_SECONDS
        return session not in self._coordinator.ensemble.sessions and not is_misled

    def _look_at_heads(self, topic: str, name: str) -> None:
        """Check that only one of the brokers that would accept sends has the newest epoch: the process that became its head."""
        epochs, newest = [], self.lists(topic, name).epoch
        for broker in self._brokers:
            unit = None if broker.agent is None or broker.is_slave else broker.agent.units.get((topic, name))
            if unit is None or not _takes_sends(broker, unit):
                continue
            epochs.append(unit.epoch)
            if self._is_over(broker.name, self._coordinator.clients[broker.name].session_id):
                raise Broken(f"{broker.name} takes sends of {topic}/{name}, and its session is over")
            if unit.epoch == newest and broker.agent is not self._promoted.get(unit_path(topic, name)):
                raise Broken(f"{broker.name} takes sends of {topic}/{name}, and another process became the head")
        if epochs.count(newest) > 1 or max(epochs, default=0) > newest:
            raise Broken(f"{topic}/{name} is at epoch {newest}, and sends are taken in {epochs}")

    def _may_not_go_back(self, topic_and_group: str) -> bool:
        alone = self._members.get(topic_and_group.rpartition("@")[2], 1) == 1
        return self._links_are_sound and (self._nodes_are_sound or alone)

    # the end

    def missing(self) -> list[str]:
        not_done = [
            f"{sent.name} by {group}"
            for sent in self.sent.values()
            for group, done in self.done.items()
            if sent.owed and reads(group, sent.topic) and sent.name not in done and self._expects(group, sent)
        ]
        return [*not_done, *(f"an answer to {name}" for name in self._unanswered), *self._not_settled()]

    def _is_for(self, group: str, topic: str) -> bool:
        return reads(group, topic)

    def late_probes(self, first: int) -> list[str]:
        """Return the late ones. Apache's clients find the head by their next look at the route: nothing is late before."""
        late = super().late_probes(first)
        if self._lists_changed_at > self._world.clock.now - LONG_KNOWN_SECONDS:
            late = [one for one in late if not one.endswith(f" by {APACHES_GROUP}")]
        return late

    def _not_settled(self) -> Iterator[str]:
        """Units whose groups are not all well, or which have something left to consume."""
        for one, unit in self._units:
            lists = self.lists(one.topic, unit)
            if set(lists.send) != set(one.groups) or len(lists.consume) != 1:
                yield f"{one.topic}/{unit} is not settled: {lists}"

    def check_queues(self) -> None:
        """The stores prove it, too. Raises Broken."""
        marks = read_marks([str(broker.disk.root) for broker in self._brokers])
        faults = [one for one in audit_order(marks).faults if one.kind != GAP or not self.lost]
        if faults or marks.problems:
            raise Broken(f"the stores are not in order: {faults[:3]} {marks.problems[:3]}")


def _takes_sends(broker: BrokerNode, unit: BrokerUnit) -> bool:
    try:
        broker.agent.units.check_head(unit, unit.epoch)  # type: ignore[union-attr]
    except BrokerError:
        return False
    return True


def _place_in_line(name: str) -> tuple[str, int]:
    line, _, number = name.rpartition("/")
    return line, int(number)
