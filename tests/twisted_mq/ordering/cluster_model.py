"""A whole cluster made of the rules: groups with logs, masters and slaves, producers' pipelines, one consumer group.

The rules, duties and pipelines are the real ones; brokers, coordinator and network are as plain as they can be. Each
step is one thing that may happen next; the model checks after each that order holds and nothing acknowledged is lost.
Processes know of the lists what they saw last, frames arrive late, sessions outlive their processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import attrs

from twisted_mq.broker.ordering.duties import Standpoint, duty
from twisted_mq.broker.ordering.pipelines import NotNext, Pipelines
from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.ordering.rules import Moved, Ready, Refused, apply, fault_of
from twisted_mq.protocol.messages.order_mark import OrderMark

MASTER, SLAVE = 0, 1


@attrs.frozen
class Record:
    epoch: int
    value: int
    """Values rise in the order in which the application sends them."""


@attrs.define(eq=False)
class Broker:
    """A process and its store. `session` is its member node, which outlives a process that died (`ghost`)."""

    up: bool = True
    session: bool = True
    ghost: bool = False
    complete: bool = True
    log: list[Record] = attrs.field(factory=list)
    committed: int = 0
    flushed: int = 0
    """Offset up to which the log is on disk: all of it at the process's start."""


@attrs.define(eq=False)
class Pending:
    order: OrderMark
    value: int
    offset: int
    connection: Connection


@attrs.define(eq=False)
class Group:
    name: str
    brokers: tuple[Broker, Broker] = attrs.field(factory=lambda: (Broker(), Broker()))
    linked: bool = True
    retired: bool = False
    published: str | None = None
    # of the master's process
    head_epoch: int | None = None
    seen_outside: bool = False
    pipelines: Pipelines | None = None
    confirmed: int = 0
    pending: deque[Pending] = attrs.field(factory=deque)

    @property
    def follows(self) -> bool:
        """Return True if the slave's log is a part of the master's, and it can get the rest."""
        master, slave = self.brokers
        fits = slave.log == master.log[: len(slave.log)]
        return self.linked and master.up and slave.up and fits

    @property
    def in_sync(self) -> bool:
        return self.follows and len(self.brokers[SLAVE].log) == len(self.brokers[MASTER].log)

    def forget_head(self) -> None:
        """The master takes no sends: those that wait are refused."""
        self.head_epoch = self.pipelines = None
        self.pending.clear()


@attrs.define(eq=False)
class Connection:
    group: str
    epoch: int
    base: int
    producer: Producer
    frames: deque[tuple[int, int]] = attrs.field(factory=deque)


@attrs.define(eq=False)
class Producer:
    leader: int
    next_sequence: int = 1
    unacknowledged: dict[int, int] = attrs.field(factory=dict)
    connection: Connection | None = None


class ClusterModel:
    """The steps are the methods without underscore that take small numbers, see STEPS."""

    def __init__(self, groups: int = 3) -> None:
        self.groups = {name: Group(name) for name in "abc"[:groups]}
        self.lists = Lists()
        self.producer = Producer(0)
        self.connections: list[Connection] = []
        self.acknowledged: set[int] = set()
        self.consumed: set[int] = set()
        self.repeats = 0
        self.last_consumed = -1
        self.next_value = 0
        self.term: Term | None = None
        self.position: int | None = None

    # processes and links

    def crash(self, which: int, lost: int) -> None:
        """A process dies; a power cut takes what was not on disk, if the partner has it all."""
        group, broker, partner = self._broker(which)
        if not broker.up:
            return
        if partner.up and partner.complete:
            keep = max(broker.flushed, len(broker.log) - lost)
            del broker.log[keep:]
        broker.committed = max(0, broker.committed - lost)
        broker.up, broker.ghost = False, broker.session
        if broker is group.brokers[MASTER]:
            group.forget_head()

    def restart(self, which: int, _: int) -> None:
        group, broker, _partner = self._broker(which)
        if broker.up:
            return
        broker.up, broker.complete, broker.flushed = True, False, len(broker.log)
        if broker is group.brokers[MASTER]:
            group.seen_outside = False
            group.confirmed = len(broker.log)
        self._contact(group)

    def expire(self, which: int, _: int) -> None:
        """A session is over, that of a dead process or of one that was cut off; that one refuses since a while."""
        group, broker, _partner = self._broker(which)
        broker.session = broker.ghost = False
        if broker is group.brokers[MASTER]:
            group.forget_head()
            group.seen_outside = False

    def join(self, which: int, _: int) -> None:
        _group, broker, _partner = self._broker(which)
        if broker.up and not broker.session:
            broker.session = True

    def link(self, which: int, on: int) -> None:
        group, _broker, _partner = self._broker(which)
        group.linked = bool(on)
        self._contact(group)

    def replicate(self, which: int, count: int) -> None:
        group, _broker, _partner = self._broker(which)
        master, slave = group.brokers
        if group.follows:
            slave.log += master.log[len(slave.log) : len(slave.log) + 1 + count]
            self._contact(group)

    def _contact(self, group: Group) -> None:
        if group.follows:
            group.confirmed = max(group.confirmed, len(group.brokers[SLAVE].log))
        if group.in_sync:
            group.brokers[MASTER].complete = group.brokers[SLAVE].complete = True

    def copy_store(self, which: int, _: int) -> None:
        """An operator gives a master that lacks what its slave has the slave's store."""
        group, _broker, _partner = self._broker(which)
        master, slave = group.brokers
        if slave.log != master.log[: len(slave.log)] and master.up and slave.up:
            self.crash(which - which % 2, 0)
            master.log = list(slave.log)
            self.restart(which - which % 2, 0)

    def share_offsets(self, which: int, _: int) -> None:
        group, _broker, _partner = self._broker(which)
        if all(broker.up for broker in group.brokers) and group.linked:
            most = max(broker.committed for broker in group.brokers)
            for broker in group.brokers:
                broker.committed = most

    def _broker(self, which: int) -> tuple[Group, Broker, Broker]:
        group = list(self.groups.values())[which // 2 % len(self.groups)]
        return group, group.brokers[which % 2], group.brokers[1 - which % 2]

    # operators

    def retire(self, which: int, on: int) -> None:
        self._broker(which)[0].retired = bool(on)

    def move(self, which: int, _: int) -> None:
        self._apply(Moved(self._broker(which)[0].name))

    # agents

    def publish(self, which: int, _: int) -> None:
        """A master says in its node whether its slave keeps up."""
        group = self._broker(which)[0]
        if group.brokers[MASTER].up and group.brokers[MASTER].session:
            group.published = None if group.in_sync else "its slave does not keep up"

    def learn(self, which: int, _: int) -> None:
        """A master sees the lists."""
        group = self._broker(which)[0]
        master, lists = group.brokers[MASTER], self.lists
        if not (master.up and master.session and not master.ghost):
            return
        if group.name not in lists.send:
            group.seen_outside = True
        if lists.head != group.name or not group.seen_outside:
            group.forget_head()
        elif group.head_epoch != lists.epoch:
            group.forget_head()
            group.head_epoch = lists.epoch

    def tell(self, which: int, _: int) -> None:
        """An agent does its duty; the coordinator takes changes only of the lists as they are."""
        group, broker, _partner = self._broker(which)
        if not broker.up or not broker.session or broker.ghost:
            return
        if broker is group.brokers[MASTER]:
            self.learn(which, 0)
        keeper = next(one for one in self._brokers() if one.session and not one.ghost)
        who = Standpoint(
            group=group.name,
            is_master=broker is group.brokers[MASTER],
            is_keeper=broker is keeper,
            declared=True,
            seen_outside=group.seen_outside,
            has_consumed=lambda term: self._has_consumed(group, broker, term),
        )
        event = duty(self.lists, who, self._fault)
        if isinstance(event, Ready):
            broker.committed = len(broker.log)
        if event is not None:
            self._apply(event)

    def _brokers(self) -> Iterator[Broker]:
        return (broker for group in self.groups.values() for broker in group.brokers)

    def _has_consumed(self, group: Group, broker: Broker, term: Term) -> bool:
        if broker is group.brokers[SLAVE]:
            alone, end = not group.brokers[MASTER].session, len(broker.log)
        else:
            alone, end = group.head_epoch is None, group.confirmed
        empty = all(record.epoch < term.epoch for record in broker.log[:end])
        return alone and broker.complete and (empty or broker.committed >= end)

    def _fault(self, name: str) -> str | None:
        group = self.groups[name]
        if not all(broker.session for broker in group.brokers):
            return "a broker is missing"
        return "it is retired" if group.retired else group.published

    def _apply(self, event: object) -> None:
        before = self.lists
        try:
            self.lists = apply(before, event, self._fault)  # type: ignore[arg-type]
        except Refused:
            return
        assert fault_of(self.lists) is None
        if self.lists.head not in (None, before.head):
            assert all(broker.session for broker in self.groups[self.lists.head].brokers)

    # producers

    def produce(self, count: int, _: int) -> None:
        for _number in range(count % 3 + 1):
            producer = self.producer
            sequence, value = producer.next_sequence, self.next_value
            producer.unacknowledged[sequence] = value
            producer.next_sequence, self.next_value = sequence + 1, value + 1
            if producer.connection is not None:
                producer.connection.frames.append((sequence, value))

    def find_head(self, _one: int, _other: int) -> None:
        """The producer sees the lists; for another head it begins a new pipeline."""
        lists, connection = self.lists, self.producer.connection
        if lists.head is None:
            return
        if connection is None or (connection.group, connection.epoch) != (lists.head, lists.epoch):
            self.connect(0, 0)

    def connect(self, _one: int, _other: int) -> None:
        """A new pipeline begins with what is not acknowledged; frames of older ones are still on their way."""
        producer, lists = self.producer, self.lists
        if lists.head is None:
            return
        base = min(producer.unacknowledged, default=producer.next_sequence)
        producer.connection = Connection(lists.head, lists.epoch, base, producer)
        producer.connection.frames.extend(sorted(producer.unacknowledged.items()))
        self.connections.append(producer.connection)

    def give_up(self, _one: int, _other: int) -> None:
        """The application waits no longer for the first message; the producer begins a new pipeline without it."""
        unacknowledged = self.producer.unacknowledged
        if unacknowledged:
            del unacknowledged[min(unacknowledged)]
            self.connect(0, 0)

    def new_leader(self, _one: int, _other: int) -> None:
        """Another producer leads; what the old one sent may still arrive."""
        self.producer = Producer(self.producer.leader + 1)

    def deliver(self, which: int, count: int) -> None:
        self.connections = [one for one in self.connections if one.frames or one is self.producer.connection]
        if not self.connections:
            return
        connection = self.connections[which % len(self.connections)]
        for _number in range(min(len(connection.frames), count + 1)):
            self._arrive(connection, *connection.frames.popleft())

    def _arrive(self, connection: Connection, sequence: int, value: int) -> None:
        group = self.groups[connection.group]
        master, epoch = group.brokers[MASTER], connection.epoch
        leader = connection.producer.leader
        order = OrderMark(epoch, 0, leader, connection.base, sequence)
        if not master.up or group.head_epoch != epoch:
            return
        if group.pipelines is None:
            group.pipelines = Pipelines(self.producer.leader)
        if leader < group.pipelines.leader:
            return
        if leader > group.pipelines.leader:
            group.pipelines.led_by(leader)
        try:
            offset = group.pipelines.place(order)
        except NotNext:
            return
        if offset is None:
            offset = len(master.log)
            master.log.append(Record(epoch, value))
            group.pipelines.appended(order, offset)
        group.pending.append(Pending(order, value, offset, connection))

    def answer(self, which: int, lost: int) -> None:
        """The master answers what both brokers hold, if it is still the head as far as it knows."""
        group = self._broker(which)[0]
        while group.pending and group.pending[0].offset < group.confirmed:
            sent = group.pending.popleft()
            if sent.order.epoch != group.head_epoch:
                continue
            record = group.brokers[MASTER].log[sent.offset]
            assert record == Record(sent.order.epoch, sent.value), "acknowledged is what is stored"
            if not lost:
                self._acknowledge(sent.connection.producer.unacknowledged, sent.order.sequence)

    def _acknowledge(self, unacknowledged: dict[int, int], sequence: int) -> None:
        """Brokers take messages in their order: an answer says that all before it are stored, or were settled before."""
        for one in [one for one in unacknowledged if one <= sequence]:
            self.acknowledged.add(unacknowledged.pop(one))

    # the consumer

    def find_term(self, _one: int, _other: int) -> None:
        """The consumer sees the lists."""
        if self.lists.consumed != self.term:
            self.term, self.position = self.lists.consumed, None

    def consume(self, count: int, _: int) -> None:
        for _number in range(count + 1):
            self._consume_one()

    def _consume_one(self) -> None:
        serving = self._serving()
        if serving is None or self.term is None:
            return
        broker, end = serving
        if self.position is None:
            self.position = broker.committed
        while self.position < end and broker.log[self.position].epoch < self.term.epoch:
            self.position += 1
        if self.position < end:
            self._hand_out(broker.log[self.position].value)
            self.position += 1

    def _serving(self) -> tuple[Broker, int] | None:
        if self.term is None:
            return None
        group = self.groups[self.term.group]
        master, slave = group.brokers
        if master.up:
            return master, group.confirmed
        return (slave, len(slave.log)) if slave.up else None

    def _hand_out(self, value: int) -> None:
        if value in self.consumed:
            self.repeats += 1
            return
        assert value > self.last_consumed, f"{value} after {self.last_consumed}"
        passed = {one for one in self.acknowledged if self.last_consumed < one < value}
        assert not passed, f"{value} before {sorted(passed)}"
        self.consumed.add(value)
        self.last_consumed = value

    def commit(self, _one: int, _other: int) -> None:
        serving = self._serving()
        if serving is not None and self.position is not None:
            serving[0].committed = self.position

    def forget_position(self, _one: int, _other: int) -> None:
        """Another consumer of the group goes on."""
        self.position = None

    # the end

    def heal(self) -> None:
        """All faults end, time passes: everything acknowledged is consumed, and everything sent is acknowledged."""
        every = range(2 * len(self.groups))
        for which in every:
            self.retire(which, 0)
            self.restart(which, 0)
            self.link(which, 1)
        for step in (self.copy_store, self.expire, self.join):
            for which in every:
                step(which, 0)
        for _round in range(4 * len(self.groups)):
            self.settle()
        if self.producer.unacknowledged:
            self.connect(0, 0)
        self.settle()
        assert self.lists.head is not None, "some group takes sends"
        assert not self.producer.unacknowledged, "everything sent is acknowledged"
        assert self.acknowledged <= self.consumed, "everything acknowledged is consumed"

    def settle(self) -> None:
        """All that goes on by itself does so once, wherever it can."""
        every = range(2 * len(self.groups))
        for which in every:
            for step in (self.replicate, self.publish, self.learn, self.tell, self.share_offsets, self.tell):
                step(which, 1000)
        self.find_head(0, 0)
        for number in range(len(self.connections)):
            self.deliver(number, 1000)
        for which in every:
            self.replicate(which, 1000)
            self.answer(which, 0)
        self.find_term(0, 0)
        self.consume(1000, 0)
        self.commit(0, 0)


STEPS = (
    "crash", "restart", "expire", "join", "link", "replicate", "copy_store", "share_offsets", "retire", "move", "publish",
    "learn", "tell", "produce", "find_head", "connect", "give_up", "new_leader", "deliver", "answer", "find_term", "consume",
    "commit", "forget_position",
)  # fmt: skip
