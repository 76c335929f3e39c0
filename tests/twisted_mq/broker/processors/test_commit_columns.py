"""Commits that come many at a time: log, queues and counts are those of commits one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.twisted_mq.access.test_record_rights import world
from tests.twisted_mq.broker.processors.test_send_aside import PREPARED, frame
from tests.twisted_mq.broker.processors.test_send_columns import broker_of, files
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.names.system_topics import HALF_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.storage.interfaces import InnerMessage

COUNT = 40
A_READ = 10
ODD = 25
"""The place, in its read, is such that others come before and behind it."""
COMMIT, ROLLBACK, UNKNOWN = "8", "12", "0"
HALF = "TRAN_MSG\x01true\x02PGROUP\x01P\x02"
UNDECIDED = 3
"""The number of the half message that nobody ends, so that its end can be asked for."""


def end(number: int, place: int, *, flag: int = 2, serialize_type: int = 0, **other: str) -> bytes:
    """The one-way commit of the half message at a place in the log."""
    key = f"C0A8{number:04X}"
    values = {
        "topic": "T", "producerGroup": "P", "tranStateTableOffset": str(number), "commitLogOffset": str(place),
        "commitOrRollback": COMMIT, "fromTransactionCheck": "false", "msgId": key, "transactionId": key, **other,
    }  # fmt: skip
    command = RemotingCommand(
        RequestCode.END_TRANSACTION, 1000 + number, flag, "JAVA", 479, None, b"", serialize_type, ext_fields=values
    )
    return encode_frame(command)


@attrs.frozen
class Case:
    """Describes an odd half message among others: how it is sent, and how its transaction is ended."""

    properties: str = HALF
    queue: str = "0"
    end: Mapping[str, Any] = attrs.field(factory=dict)
    place: Callable[[int], int] = lambda place: place
    host: str = "127.0.0.1"
    """The host of another connection that sends it; with the usual host it is the connection that ends it."""
    twice: bool = False
    """Its end comes again at once, and with the next read."""
    damage: tuple[bytes, bytes] = (b"", b"")
    """Bytes in its end, and what is there instead."""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    code: int | None = None
    """The answer's code where the commit is not one-way."""


CASES = {
    "nothing": Case(),
    "a rollback": Case(end={"commitOrRollback": ROLLBACK}),
    "no decision": Case(end={"commitOrRollback": UNKNOWN}),
    "another group": Case(end={"producerGroup": "Q"}),
    "another place in the queue": Case(end={"tranStateTableOffset": "24"}),
    "a place behind the queue": Case(end={"tranStateTableOffset": "45"}),
    "a place far behind the queue": Case(end={"tranStateTableOffset": "99"}),
    "no number": Case(end={"tranStateTableOffset": "2x"}),
    "another place in the log": Case(place=lambda place: place - 1),
    "a second commit": Case(twice=True),
    "another host": Case(host="127.0.0.9", options={"transaction_members_only": True}),
    "a half message of another group": Case(properties="TRAN_MSG\x01true\x02PGROUP\x01Q\x02"),
    "an opaque that is no number": Case(damage=(b":1025", b":1x25")),
    "an opaque that begins with 0": Case(damage=(b":1025", b":0025")),
    "a text that is no JSON": Case(damage=(b"C0A80019", b"C0A8\x00019")),
    "an immunity time": Case(properties=f"{HALF}CHECK_IMMUNITY_TIME_IN_SECONDS\x0160\x02"),
    "an immunity time that is over": Case(properties=f"{HALF}CHECK_IMMUNITY_TIME_IN_SECONDS\x011\x02"),
    "a level": Case(properties=f"{HALF}DELAY\x012\x02"),
    "a time": Case(properties=f"{HALF}TIMER_DELAY_SEC\x012\x02"),
    "a new queue": Case(queue="3"),
    "an answer": Case(end={"flag": 0}, code=0),
    "an odd text": Case(end={"msgId": 'C0A8"019'}),
}


@attrs.frozen
class Outcome:
    """Holds a broker's answers, files and counts, and its answers to one more end of each transaction."""

    answers: list[list[tuple[int, str | None]]]
    written: dict[str, bytes]
    counted: dict[Any, Any]
    again: set[tuple[int, str | None]]


def outcome(folder: Path, case: Case, *, columns: bool, serialize_type: int) -> tuple[Outcome, int]:
    """Commit transactions, of which one is the case's; return also how many were taken together."""
    with files(folder) as store:
        broker = broker_of(store, columns=columns, **case.options)
        peer, other = broker.connect(), broker.connect(53000, case.host)
        make_queues(peer)
        places = halves(broker, peer, other, case)
        broker.clock.advance(8)
        ends = [end(number, place, serialize_type=serialize_type) for number, place in enumerate(places)]
        odd = end(ODD, case.place(places[ODD]), serialize_type=serialize_type, **case.end)
        ends[ODD] = odd.replace(*case.damage)
        if case.twice:
            ends[ODD] *= 2
            ends.insert(ODD + A_READ, odd)
        del ends[UNDECIDED]
        peer.transport.clear()
        answers = [answers_to(peer, read) for read in reads_of(ends)]
        taken = broker.controller.statistics.commits_together
        broker.clock.advance(4)
        counted = counts(broker)
        again = {
            one
            for number, place in enumerate(places)
            if number != UNDECIDED
            for one in answers_to(peer, end(number, place, flag=0))
        }
    return Outcome(answers, written(folder), counted, again), taken


def make_queues(peer: Peer) -> None:
    """Send a message to each queue."""
    for number, queue in enumerate("001122"):
        peer.channel.dataReceived(frame(100 + number, "", topic="TU"[number % 2], queue=queue))


def halves(broker: BrokerInMemory, peer: Peer, other: Peer, case: Case) -> list[int]:
    """Send half messages, and return their places."""
    for number in range(COUNT):
        properties, queue, sender = HALF, str(number % 3), peer
        if number == ODD:
            properties, queue, sender = (
                case.properties,
                case.queue,
                peer if case.host == peer.channel.remote_address[0] else other,
            )
        sent = frame(number, properties, topic="TU"[number % 2], queue=queue, sys_flag=PREPARED)
        sender.channel.dataReceived(sent)
    return places_of(broker)


def places_of(broker: BrokerInMemory) -> list[int]:
    """The places of the half messages in the log."""
    broker.controller.dispatch()
    return [at for at, _, _ in broker.store.queue_entries(HALF_TOPIC, 0, 0, COUNT)]


def reads_of(frames: Sequence[bytes]) -> list[bytes]:
    """Return frames as they arrive."""
    return [b"".join(frames[start : start + A_READ]) for start in range(0, len(frames), A_READ)]


def answers_to(peer: Peer, read: bytes) -> list[tuple[int, str | None]]:
    """The codes and remarks of what a read's requests are answered with."""
    peer.channel.dataReceived(read)
    written = peer.transport.value()
    peer.transport.clear()
    answers: Sequence[Any] = FrameDecoder().receive_data(written)
    return [(answer.code, answer.remark) for answer in answers]


def counts(broker: BrokerInMemory) -> dict[Any, Any]:
    statistics = broker.controller.statistics
    found: dict[Any, Any] = {
        (topic, queue_id): (counter.times, counter.bytes, counter.more)
        for topic, puts in statistics.puts.items()
        for queue_id, counter in puts.items()
    }
    found |= {topic: (puts.sizes().counts, puts.sizes().total) for topic, puts in statistics.puts.items()}
    found["committed"] = {topic: (one.counts, one.total) for topic, one in statistics.committed.items()}
    found["rolled back"] = dict(statistics.rolled_back)
    found["prepared"] = [broker.controller.transactions.metrics.count(topic) for topic in "TU"]
    return found | {"messages": statistics.put_messages}


def written(folder: Path) -> dict[str, bytes]:
    """The files of the log and of the queues."""
    queues = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.parent.name.isdigit()}
    logs = {path.name: path for path in (folder / "commitlog").iterdir()}
    return {name: path.read_bytes() for name, path in (queues | logs).items()}


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("name", CASES)
def test_commits_together_are_what_they_are_one_by_one(tmp_path: Path, name: str, serialize_type: int) -> None:
    case = CASES[name]
    single, none = outcome(tmp_path / "single", case, columns=False, serialize_type=serialize_type)
    together, taken = outcome(tmp_path / "together", case, columns=True, serialize_type=serialize_type)
    assert none == 0
    assert attrs.asdict(together) == attrs.asdict(single)
    assert ODD - A_READ <= taken <= COUNT - 1 - (case != Case())
    assert [one for read in together.answers for one in read] == ([] if case.code is None else [(case.code, None)])


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_rollbacks_are_taken_one_by_one(serialize_type: int) -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    make_queues(peer)
    places = halves(broker, peer, peer, Case())
    rollback: dict[str, Any] = {"commitOrRollback": ROLLBACK, "serialize_type": serialize_type}
    for read in reads_of([end(number, place, **rollback) for number, place in enumerate(places)]):
        peer.channel.dataReceived(read)
    statistics = broker.controller.statistics
    assert (statistics.commits_together, statistics.rolled_back) == (0, {"T": COUNT // 2, "U": COUNT // 2})


@pytest.mark.parametrize(("flush", "taken"), [("ASYNC_FLUSH", True), ("SYNC_FLUSH", False)])
def test_commits_that_wait_for_the_disk_are_taken_one_by_one(flush: str, taken: bool) -> None:
    broker = BrokerInMemory(flush_disk_type=flush)
    assert (commit_all(broker, broker.connect()) > 0) is taken
    assert broker.controller.transactions.metrics.count("T") == 0


def test_commits_are_taken_one_by_one_where_rights_are_checked(tmp_path: Path) -> None:
    broker, _, _ = world(tmp_path)
    peer = broker.connect()
    broker.store.put_message(InnerMessage("T", 0, b"plain", b"", {}, 0))
    for number in range(COUNT):
        properties = f"UNIQ_KEY\x01C0A8{number:04X}\x02{HALF}REAL_TOPIC\x01T\x02REAL_QID\x010\x02"
        half = InnerMessage(HALF_TOPIC, 0, b"hello", properties.encode(), {}, 0, born_host=peer.channel.packed_address)
        broker.store.put_message(half)
    commit(peer, places_of(broker))
    statistics = broker.controller.statistics
    assert (statistics.commits_together, broker.store.max_offset_in_queue("T", 0)) == (0, 1)


def commit_all(broker: BrokerInMemory, peer: Peer) -> int:
    """Commit some transactions; return how many were taken together."""
    make_queues(peer)
    places = halves(broker, peer, peer, Case())
    commit(peer, places)
    return broker.controller.statistics.commits_together


def commit(peer: Peer, places: Sequence[int]) -> None:
    """Commit the transactions of half messages, of which the first has queue offset 0."""
    for read in reads_of([end(number, place) for number, place in enumerate(places)]):
        peer.channel.dataReceived(read)


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_commits_and_sends_that_come_in_turn_are_taken_together_all_the_same(serialize_type: int) -> None:
    """So are those of a producer with many threads: each commits, and sends its next half message."""
    single, together = (in_turn(columns=columns, serialize_type=serialize_type) for columns in (False, True))
    assert (together.answers, together.stored) == (single.answers, single.stored)
    assert (single.taken, len(single.stored)) == ((0, 0), 3 * COUNT + 6)
    assert min(together.taken) >= COUNT - 20  # a place with more digits than the ones before it ends both streaks


@attrs.frozen
class InTurn:
    """Holds what a broker answered, the messages of all queues without their places, and how many came together."""

    answers: list[tuple[int, str | None]]
    stored: list[tuple[str, int, bytes, str]]
    taken: tuple[int, int]


def in_turn(*, columns: bool, serialize_type: int) -> InTurn:
    """Send commits and half messages in turn, ten of each before many."""
    broker = broker_of(columns=columns)
    peer = broker.connect()
    make_queues(peer)
    places = halves(broker, peer, peer, Case())
    ends = [end(number, place, serialize_type=serialize_type) for number, place in enumerate(places)]
    sent = [
        frame(number, HALF, topic="TU"[number % 2], sys_flag=PREPARED, serialize_type=serialize_type)
        for number in range(COUNT, 2 * COUNT)
    ]
    pairs = [b"".join(pair) for pair in zip(ends, sent, strict=True)]
    peer.channel.dataReceived(b"".join(pairs[:10]))  # so both have a shape
    statistics = broker.controller.statistics
    before, sends_before = statistics.commits_together, statistics.sends_together
    peer.transport.clear()
    answers = answers_to(peer, b"".join(pairs[10:]))
    taken = statistics.commits_together - before, statistics.sends_together - sends_before
    assert [broker.controller.transactions.metrics.count(topic) for topic in "TU"] == [COUNT // 2, COUNT // 2]
    return InTurn(answers, sorted(messages_of(broker)), taken)


def messages_of(broker: BrokerInMemory) -> Iterator[tuple[str, int, bytes, str]]:
    """Yield topic, queue id, body and properties of each message."""
    broker.controller.dispatch()
    for topic in ("T", "U", HALF_TOPIC):
        for queue_id in broker.store.queue_ids(topic):
            for at, _, _ in broker.store.queue_entries(topic, queue_id, 0, 3 * COUNT):
                message = StoredMessage.read(broker.store.look_message(at) or b"")
                yield message.topic, queue_id, message.body, str(sorted(message.properties.items()))


def test_ends_that_name_far_places_read_no_more_than_near_ones() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    places = halves(broker, peer, peer, Case())
    asked: list[int] = []
    get = broker.store.get_message

    def get_counted(topic: str, queue_id: int, offset: int, count: int, *more: Any) -> Any:
        asked.append(count)
        return get(topic, queue_id, offset, count, *more)

    broker.store.get_message = get_counted
    offsets = [10**6 * (1 + number % 9) for number in range(COUNT)]
    far = zip(places, offsets, strict=True)
    for read in reads_of([end(number, place, tranStateTableOffset=str(at)) for number, (place, at) in enumerate(far)]):
        peer.channel.dataReceived(read)
    assert max(asked, default=0) <= 4 * A_READ
    assert [broker.controller.transactions.metrics.count(topic) for topic in "TU"] == [COUNT // 2, COUNT // 2]


def test_half_messages_of_ends_that_are_not_taken_together_are_read_few_times() -> None:
    """Otherwise each end would have the half messages of all others behind it in its read looked up again."""
    broker = BrokerInMemory()
    sender, stranger = broker.connect(host="127.0.0.9"), broker.connect()
    make_queues(sender)
    places = halves(broker, sender, sender, Case(host="127.0.0.9"))
    for number in (0, 1):
        stranger.channel.dataReceived(end(number, places[number]))
    get, asked = broker.store.get_message, list[str]()

    def get_counted(topic: str, *more: Any) -> Any:
        asked.append(topic)
        return get(topic, *more)

    broker.store.get_message = get_counted
    stranger.channel.dataReceived(b"".join(end(number, places[number]) for number in range(2, 34)))
    assert 0 < asked.count(HALF_TOPIC) <= 12
    assert sum(broker.controller.transactions.metrics.count(topic) for topic in "TU") == COUNT


def test_what_another_host_sent_is_committed_by_no_stranger() -> None:
    broker = BrokerInMemory(transaction_members_only=True)
    sender, stranger = broker.connect(host="127.0.0.9"), broker.connect()
    make_queues(sender)
    places = halves(broker, sender, sender, Case(host="127.0.0.9"))
    commit(stranger, places)
    assert broker.controller.statistics.commits_together == 0
    assert [broker.controller.transactions.metrics.count(topic) for topic in "TU"] == [COUNT // 2, COUNT // 2]


def test_a_strangers_damaged_request_keeps_no_other_commits_from_being_taken_together() -> None:
    """The stranger's requests are of the family of the sender's, and the first that is taken for a streak is damaged."""
    broker = BrokerInMemory()
    sender, stranger = broker.connect(), broker.connect(53000)
    make_queues(sender)
    places = halves(broker, sender, sender, Case())
    ends = [end(number, place) for number, place in enumerate(places)]
    for number in (10, 11):  # so the sender's commits have a shape
        sender.channel.dataReceived(ends[number])
    stranger.channel.dataReceived(b"".join([*ends[10:12], ends[12].replace(b":1012", b":1x12"), *ends[13:17]]))
    assert broker.controller.statistics.commits_together == 0
    for read in reads_of(ends[20:]):
        sender.channel.dataReceived(read)
    assert broker.controller.statistics.commits_together > 0
