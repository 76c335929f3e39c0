"""When a committed offset may go back, and what ordered groups may lose: the observer's own rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.simulation.coordinator import CoordinatorNode
from tests.simulation.given_back import given_back
from tests.simulation.observer import Observer, _first_left
from tests.simulation.ordered_observer import OrderedObserver
from tests.simulation.world import Broken, World
from twisted_mq.ordering.lists import OrderedTopic
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, SCHEDULE_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_REAL_TOPIC, encode_properties
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage, PutStatus
from twisted_mq.storage.memory.memory_store import MemoryMessageStore

TOPIC = OrderedTopic("Queues", 1, ("a",))


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as made:
        yield made


def broker(**more: Any) -> Any:
    """Return a running broker, of which the observer sees offsets and ends."""
    offsets = SimpleNamespace(offsets={"Plain@push": {0: 7}})
    controller = SimpleNamespace(offsets=offsets, ha=SimpleNamespace(accept=SimpleNamespace(connections=[])))
    store = SimpleNamespace(
        max_physical_offset=lambda: 1000,
        min_physical_offset=lambda: 0,
        flushed_offset=lambda: 400,
        max_offset_in_queue=lambda topic, queue_id: 0,
    )
    fields = {"name": "a-0", "broker_name": "a", "is_running": True, "is_slave": False, "is_sync_master": False}
    return SimpleNamespace(
        **fields | {"is_sync_flush": False, "store": store, "service": SimpleNamespace(controller=controller)} | more
    )


@pytest.mark.parametrize("members", [1, 2])
def test_offset_goes_back_where_members_may_not_know_of_each_other_and_nowhere_else(world: World, members: int) -> None:
    """A broker that has just started knows one member of two: that one takes the other's queue too, as with 5.3.3."""
    one = broker()
    observer = Observer(world, [one], Counter(push=members))
    observer.nodes_fail()
    observer.look()
    one.service.controller.offsets.offsets["Plain@push"][0] = 5
    if members == 1:
        with pytest.raises(Broken, match="went back from 7 to 5"):
            observer.look()
    else:
        observer.look()


def test_offset_goes_back_once_where_a_slave_was_consumed_again(world: World) -> None:
    """To what was consumed there again at the least, and also when the master is back meanwhile."""
    master = broker(store=log_of(*[b"x"] * 8))
    observer = Observer(world, [master, broker(name="a-1", is_slave=True)], Counter(push=1))
    observer.look()
    for offset in (4, 5):
        observer.sends(f"p-{offset}", "Plain")
        message: Any = SimpleNamespace(body=b"p-%d ." % offset, properties={}, queue_offset=offset, physical_offset=0)
        observer.was_consumed("push", MessageQueue("Plain", "a", 0), message, "c")
    observer.after_start(master)
    offsets = master.service.controller.offsets.offsets["Plain@push"]
    for offsets[0] in (7, 5, 7):
        observer.look()
    offsets[0] = 6
    with pytest.raises(Broken, match="went back from 7 to 6"):
        observer.look()


def test_offset_goes_back_to_the_end_of_a_slave_that_lost_more(world: World) -> None:
    slave = broker(name="a-1", is_slave=True, store=log_of(*[b"x"] * 6))
    master = broker()
    observer = Observer(world, [master, slave], Counter(push=1))
    offsets = master.service.controller.offsets.offsets["Plain@push"]
    observer.look()
    observer.after_start(slave)
    for offsets[0] in (6, 7):
        observer.look()
    offsets[0] = 5
    with pytest.raises(Broken, match="went back from 7 to 5"):
        observer.look()


def test_offset_that_rises_has_not_gone_back_wherever_a_slave_was_consumed_again(world: World) -> None:
    slave = broker(name="a-1", is_slave=True, store=log_of(*[b"x"] * 6))
    master = broker()
    observer = Observer(world, [master, slave], Counter(push=1))
    offsets = master.service.controller.offsets.offsets["Plain@push"]
    observer.look()
    observer.after_start(slave)
    observer._committed["a", "Plain@push", 0] = offsets[0] = 0
    for offsets[0] in (0, 2):
        observer.look()


@pytest.mark.parametrize(
    ("is_sync_flush", "sent_after", "is_broken"), [(False, 0.0, False), (True, 0.0, True), (False, 2.0, True)]
)
def test_a_slave_that_does_not_flush_may_lose_a_message_whose_answer_is_under_way(
    world: World, is_sync_flush: bool, sent_after: float, is_broken: bool
) -> None:
    slave = broker(name="10.0.1.2", is_slave=True, is_sync_flush=is_sync_flush)
    slave.store.max_physical_offset = lambda: 0
    observer = Observer(world, [broker(is_sync_master=True), slave], Counter())
    if not sent_after:
        observer.sends("p-1", "Plain")
    world.clock.advance(1.0)
    observer.before_power_cut(slave)
    if sent_after:
        world.clock.advance(1.0)
        observer.sends("p-1", "Plain")
    observer.was_acknowledged("p-1", "a", "Plain", 0, 0, "0A00010100002A9F0000000000000000")
    assert ("10.0.1.2 has not got it" in observer.broken) == is_broken


@pytest.mark.parametrize("flushed", [400, 1000])
def test_offset_goes_back_where_a_power_cut_took_what_was_not_acknowledged(world: World, flushed: int) -> None:
    one = broker(is_sync_flush=True)
    one.store.flushed_offset = lambda: flushed
    observer = ordered(world, one, broker(name="a-1", is_slave=True))
    observer._look_at_offsets(one)
    observer.before_power_cut(one)
    one.service.controller.offsets.offsets["Plain@push"][0] = 5
    if flushed < 1000:
        observer._look_at_offsets(one)
    else:
        with pytest.raises(Broken, match="went back from 7 to 5"):
            observer._look_at_offsets(one)


def ordered(world: World, *brokers: Any, members: Counter[str] | None = None) -> OrderedObserver:
    both = list(brokers) or [broker(), broker(name="a-1", is_slave=True)]
    return OrderedObserver(world, both, members or Counter(audit=1), CoordinatorNode(world, "10.0.8.1"), [TOPIC])


def consumed(observer: OrderedObserver, name: str, mark: str) -> None:
    number = int(name.rpartition("/")[2])
    message: Any = SimpleNamespace(
        body=f"{name} .".encode(), properties={"ORDERED": mark}, queue_offset=number, physical_offset=0
    )
    observer.was_consumed_in_order("audit", MessageQueue("Queues", "a", 0), message, "c")


@pytest.mark.parametrize(
    ("marks", "says"),
    [
        (["1:0:1:1:1", "1:0:1:1:2", "1:0:1:1:2"], ""),
        (["1:0:1:1:2", "1:0:1:1:1"], "behind"),
        (["2:0:1:1:1", "1:0:1:1:2"], "of epoch and leader"),
        (["1:0:3:1:1", "2:0:2:1:2"], "of epoch and leader"),
    ],
    ids=["in order, one again", "swapped", "older epoch", "older leader"],
)
def test_lines_are_consumed_in_order(world: World, marks: list[str], says: str) -> None:
    observer = ordered(world)
    names = {number: observer.sends_in_order("p.1/Queues/0", "Queues", number) for number in (1, 2, 3)}
    for mark in marks:
        consumed(observer, names[int(mark.rpartition(":")[2])], mark)
    assert says in observer.broken
    assert bool(says) is bool(observer.broken)


def test_plain_producers_follow_no_leader_and_hide_none(world: World) -> None:
    observer = ordered(world)
    led = [observer.sends_in_order("p.1/Queues/0", "Queues", number) for number in (1, 2)]
    plain = observer.sends_in_order("q.1/Queues/key-0", "Queues", 1)
    consumed(observer, led[0], "1:0:3:1:1")
    consumed(observer, plain, "1:0")
    assert not observer.broken
    consumed(observer, led[1], "1:0:2:1:2")
    assert "of epoch and leader (1, 2), behind (1, 3)" in observer.broken


def test_apaches_clients_are_owed_the_topic_that_is_ordered_as_a_whole_alone(world: World) -> None:
    observer = ordered(world, members=Counter(audit=1, orderly=1))
    for topic in ("Queues", "Whole"):
        name = observer.sends_in_order(f"p.1/{topic}/0", topic, 1)
        observer.was_acknowledged(name, "a", topic, 0, 0, "0A00010100002A9F0000000000000000")
    owed = [one for one in observer.missing() if " by " in one]
    assert owed == ["p.1/Queues/0/1 by audit", "p.1/Whole/0/1 by audit", "p.1/Whole/0/1 by orderly"]


def test_slave_acknowledges_nothing(world: World) -> None:
    observer = ordered(world, broker(), broker(name="10.0.1.2", is_slave=True))
    name = observer.sends_in_order("p.1/Queues/0", "Queues", 1)
    observer.was_acknowledged(name, "a", "Queues", 0, 0, "0A00010200002A9F0000000000000000")
    assert observer.broken == f"{name} was acknowledged by the slave 10.0.1.2"


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_was_acknowledged_is_not_passed_over_whenever_that_is_heard(world: World, is_lost: bool) -> None:
    """Unless a power cut took it meanwhile."""
    observer = ordered(world)
    first, second = (observer.sends_in_order("p.1/Queues/0", "Queues", number) for number in (1, 2))
    if is_lost:
        observer._may_lose("a", 0)
        for one in observer._brokers:
            one.is_running = False
    consumed(observer, second, "1:0:1:1:2")
    assert not observer.broken
    observer.was_acknowledged(first, "a", "Queues", 0, 0, "0A00010100002A9F0000000000000000")
    assert ("has passed it over" in observer.broken) is not is_lost


@pytest.mark.parametrize(("held", "is_dark", "owed"), [(1000, False, True), (500, False, False), (1000, True, False)])
def test_power_cut_may_take_what_is_on_no_disk_and_not_at_the_partner(
    world: World, held: int, is_dark: bool, owed: bool
) -> None:
    """Not what a partner that was killed had, for its system writes that; what is dark has only what it had flushed."""
    partner = broker(name="a-1", is_slave=True)
    partner.store.max_physical_offset = lambda: held
    one = broker()
    observer = ordered(world, one, partner)
    name = observer.sends_in_order("p.1/Queues/0", "Queues", 1)
    observer.was_acknowledged(name, "a", "Queues", 0, 0, "0A00010100002A9F0000000000000258")
    if is_dark:
        observer.before_power_cut(partner)
    partner.is_running = False
    observer.before_power_cut(one)
    assert observer.sent[name].owed is owed


def test_what_consumers_gave_back_may_be_lost_where_it_is_on_no_disk() -> None:
    store = MemoryMessageStore(StoreConfig(store_path_root_dir="/nowhere"), lambda: 1)
    store.start()

    def put(topic: str, body: bytes, real_topic: str | None = None) -> None:
        properties = {} if real_topic is None else {PROPERTY_REAL_TOPIC: real_topic}
        text = encode_properties(properties).encode()
        assert store.put_message(InnerMessage(topic, 0, body, text, properties, 0)).status is PutStatus.PUT_OK

    put("%RETRY%push", b"on disk")
    flushed = store.max_physical_offset()
    put("%RETRY%push", b"again")
    put("Plain", b"first")
    put(SCHEDULE_TOPIC, b"soon again", "%RETRY%push")
    put(SCHEDULE_TOPIC, b"delayed", "Plain")
    store.dispatch()
    assert sorted(message.body for message in given_back(store, flushed)) == [b"again", b"soon again"]


def log_of(*bodies: bytes, topic: str = "Plain") -> MemoryMessageStore:
    """A store whose log has these messages."""
    store = MemoryMessageStore(StoreConfig(store_path_root_dir="/nowhere"), lambda: 1)
    store.start()
    for body in bodies:
        assert store.put_message(InnerMessage(topic, 0, body, b"", {}, 0)).status is PutStatus.PUT_OK
    store.dispatch()
    return store


def test_an_acknowledgement_of_other_bytes_is_found(world: World) -> None:
    """Also where the master wrote just as many bytes as it had lost."""
    slave = broker(name="a-1", is_slave=True, store=log_of(b"a", b"b", b"C"))
    master = broker(store=log_of(b"a", b"B", b"C"))
    observer = Observer(world, [master, slave], Counter(push=1))
    end = slave.store.max_physical_offset()
    master.service.controller.ha.accept.connections.append(SimpleNamespace(slave_ack_offset=end))
    with pytest.raises(Broken, match=r"a-1 acknowledged .* and its log differs from"):
        observer.look()


@pytest.mark.parametrize("kind", [Observer, OrderedObserver])
@pytest.mark.parametrize(
    ("is_cut", "is_sync_flush", "is_new_link", "is_broken"),
    [(True, False, False, False), (True, False, True, True), (True, True, False, True), (False, False, False, True)],
    ids=["its link from before the cut", "its new link", "synchronous flush", "a kill"],
)
def test_what_a_slave_reported_before_its_power_was_cut_may_be_gone_if_it_does_not_flush(
    world: World, kind: type[Observer], is_cut: bool, is_sync_flush: bool, is_new_link: bool, is_broken: bool
) -> None:
    slave = broker(name="a-1", is_slave=True, is_sync_flush=is_sync_flush, store=log_of(b"a", b"b"))
    master = broker(store=log_of(b"a", b"b", b"c"))
    more = (CoordinatorNode(world, "c"), [TOPIC]) if kind is OrderedObserver else ()
    observer = kind(world, [master, slave], Counter(push=1), *more)
    end = slave.store.max_physical_offset()
    link = SimpleNamespace(host="a-1", slave_ack_offset=end)
    links = master.service.controller.ha.accept.connections
    links.append(link)
    observer._compare(master, slave)
    link.slave_ack_offset = master.store.max_physical_offset()
    if is_cut:
        observer.before_power_cut(slave)
    if is_new_link:
        links.append(SimpleNamespace(host="a-1", slave_ack_offset=master.store.max_physical_offset()))
    if is_broken:
        with pytest.raises(Broken, match=f"and its log differs from {end} on"):
            observer._compare(master, slave)
    else:
        observer._compare(master, slave)


@pytest.mark.parametrize("kind", [Observer, OrderedObserver])
def test_what_a_slave_lost_and_copied_again_is_compared_again(world: World, kind: type[Observer]) -> None:
    slave = broker(name="a-1", is_slave=True, store=log_of(b"a", b"b"))
    master = broker(store=log_of(b"a", b"b"))
    more = (CoordinatorNode(world, "c"), [TOPIC]) if kind is OrderedObserver else ()
    observer = kind(world, [master, slave], Counter(push=1), *more)
    link = SimpleNamespace(host="a-1", slave_ack_offset=slave.store.max_physical_offset())
    master.service.controller.ha.accept.connections.append(link)
    observer._compare(master, slave)
    slave.store = log_of(b"a")
    observer.after_start(slave)
    slave.store = log_of(b"a", b"B")
    with pytest.raises(Broken, match="and its log differs from"):
        observer._compare(master, slave)


@pytest.mark.parametrize(("sync_flush", "end"), [(True, 999), (True, 1000), (False, 999)])
def test_a_slave_keeps_what_it_reported_as_flushed(world: World, sync_flush: bool, end: int) -> None:
    slave = broker(name="a-1", is_slave=True, is_sync_flush=sync_flush)
    observer = Observer(world, [broker(), slave], Counter())
    observer._compared["a-1"] = 1000
    slave.store.max_physical_offset = lambda: end
    observer.after_start(slave)
    assert bool(observer.broken) is (sync_flush and end < 1000)


@pytest.mark.parametrize("kind", [Observer, OrderedObserver])
@pytest.mark.parametrize("end", [999, 1000])
def test_a_slave_keeps_what_it_reported_just_before_its_power_was_cut(
    world: World, kind: type[Observer], end: int
) -> None:
    """The observer looks each second; a report of that second counts as well."""
    master, slave = broker(), broker(name="a-1", is_slave=True, is_sync_flush=True)
    master.service.controller.ha.accept.connections.append(SimpleNamespace(host="a-1", slave_ack_offset=1000))
    more = (CoordinatorNode(world, "c"), [TOPIC]) if kind is OrderedObserver else ()
    observer = kind(world, [master, slave], Counter(), *more)
    observer.before_power_cut(slave)
    slave.store.max_physical_offset = lambda: end
    observer.after_start(slave)
    assert bool(observer.broken) is (end < 1000)


@pytest.mark.parametrize(
    ("flushed", "at_master", "sent_after_cut", "is_broken"),
    [(400, False, False, False), (401, False, False, True), (400, True, False, True), (400, False, True, True)],
    ids=["on the slave's disk alone", "on the master's disk", "shown by the master", "sent after the cut"],
)
def test_what_a_slave_showed_before_its_masters_disk_had_it_may_be_lost_with_the_masters_power(
    world: World, flushed: int, at_master: bool, sent_after_cut: bool, is_broken: bool
) -> None:
    master = broker(is_sync_flush=True, is_sync_master=True, store=log_of(*[b"p-1 ."] * at_master))
    master.store.flushed_offset = lambda: flushed
    observer = Observer(world, [master, broker(name="a-1", is_slave=True, is_sync_flush=True)], Counter(push=1))
    if sent_after_cut:
        observer.before_power_cut(master)
        world.clock.advance(1.0)
    observer.sends("p-1", "Plain")
    message: Any = SimpleNamespace(body=b"p-1 .", properties={}, queue_offset=0, physical_offset=400)
    observer.was_consumed("push", MessageQueue("Plain", "a", 0), message, "c")
    if not sent_after_cut:
        observer.before_power_cut(master)
    master.store = log_of()
    observer.after_start(master)
    assert observer.broken == ("p-1 was consumed at ('a', 'Plain', 0, 0), and is lost" if is_broken else "")


def test_messages_of_deleted_files_are_not_expected_before_their_queue_is_trimmed() -> None:
    class Store:
        """A log that begins at 1000, and a queue whose first two messages lie before that."""

        def min_physical_offset(self) -> int:
            return 1000

        def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
            return 0

        def queue_entries(self, topic: str, queue_id: int, offset: int, count: int) -> list[tuple[int, int, int]]:
            return [(500, 100, 0), (900, 100, 0), (1000, 100, 0)][offset : offset + count]

    assert [_first_left(cast(Any, Store()), "T", 0, offset) for offset in (0, 1, 2, 3)] == [2, 2, 2, 3]


@pytest.mark.parametrize("seen", [(2, 0), (0, 2)])
def test_an_offset_may_go_back_as_far_as_the_lowest_of_its_reasons(world: World, seen: tuple[int, int]) -> None:
    """A slave that lost its log's end, and a consumer that begins at it with a still older offset (seed 32894)."""
    one, place = broker(), ("a", "Plain@push", 0)
    observer = Observer(world, [one], Counter(push=1))
    observer.look()
    for offset in seen:
        observer._may_go_back(place, offset)
    one.service.controller.offsets.offsets["Plain@push"][0] = 1
    observer.look()
    one.service.controller.offsets.offsets["Plain@push"][0] = 0
    with pytest.raises(Broken, match="went back from 1 to 0"):
        observer.look()


@pytest.mark.parametrize("asked", [14, 15])
def test_a_transaction_that_was_given_up_is_not_owed_when_its_acknowledgement_is_handled(
    world: World, asked: int
) -> None:
    """Its producer stood still meanwhile (seed 36610)."""
    one = broker(store=log_of(*[b"p-1 ."] * (asked == 15), topic=CHECK_MAX_TIME_TOPIC))
    observer = Observer(world, [one], Counter())
    observer.sends("p-1", "Plain", transaction="COMMIT")
    world.clock.advance(20.0)
    observer.look()
    observer.was_acknowledged("p-1", "a", "Plain", 0, 0, "0A00010100002A9F0000000000000000")
    if asked == 15:
        observer.check_queues()
    else:
        with pytest.raises(Broken, match="p-1 was acknowledged, and is in no queue"):
            observer.check_queues()


@pytest.mark.parametrize("kind", [Observer, OrderedObserver])
@pytest.mark.parametrize(
    ("flushed", "is_kept", "sent_after", "is_deleted", "owed"),
    [
        (0, False, False, False, False),
        (0, True, False, False, True),
        (1000, False, False, False, True),
        (0, False, True, False, True),
        (1000, False, False, True, False),
    ],
    ids=["lost", "kept", "on disk", "sent after the cut", "its file deleted"],
)
def test_what_a_fault_took_is_not_owed_when_its_acknowledgement_is_handled(
    world: World, kind: type[Observer], flushed: int, is_kept: bool, sent_after: bool, is_deleted: bool, owed: bool
) -> None:
    """Its producer stood still meanwhile. Its place may hold another message."""
    one, slave = broker(name="10.0.1.1"), broker(name="a-1", is_slave=True)
    slave.store.max_physical_offset = lambda: 0
    slave.is_running = False
    one.store.flushed_offset, one.store.topics = (lambda: flushed), list
    more = (CoordinatorNode(world, "c"), [TOPIC]) if kind is OrderedObserver else ()
    observer = kind(world, [one, slave], Counter(), *more)
    if not sent_after:
        observer.sends("p/1", "Queues")
    world.clock.advance(1.0)
    observer.before_power_cut(one)
    world.clock.advance(1.0)
    if sent_after:
        observer.sends("p/1", "Queues")
    one.store = log_of(b"p/1 ." if is_kept else b"p/2 .")
    observer.sends("p/2", "Queues")
    if not is_kept:
        observer.sent["p/2"].owed = True
        observer._bind(("a", "Queues", 0, 0), "p/2")
    if is_deleted:
        observer._expired["10.0.1.1"] = 100
    observer.was_acknowledged("p/1", "a", "Queues", 0, 0, "0A00010100002A9F0000000000000000")
    assert observer.sent["p/1"].owed is owed
    assert ("holds p/1, and held p/2" in observer.broken) is (owed and not is_kept)
