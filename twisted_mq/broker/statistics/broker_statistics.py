"""Counts what the broker has done: totals that the hot paths increment, rates of the totals, and counters by topic and group.

Apache: StoreStatsService, BrokerStats, BrokerStatsManager. Rates of totals are messages (or calls) a second over the
last 10 s, 1 min and 10 min, as far back as the broker runs, from a snapshot each second. Counters by topic and group
are sampled each 10 s, see `counters`.
"""

from __future__ import annotations

import collections
import datetime
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from twisted_mq.broker.statistics.counters import Counter, Counters, CountersOf, Gets, Named, Puts, Rate, Sampler
from twisted_mq.broker.statistics.creation_times import CreationTimes
from twisted_mq.broker.statistics.distributions import TRANSACTION_LIMITS_SECONDS, Distributions
from twisted_mq.broker.statistics.request_times import RequestTimes
from twisted_mq.protocol.names.system_topics import is_system_topic
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.storage.interfaces import Places
from twisted_mq.turns import Work

WINDOWS_SECONDS = (10, 60, 600)
SNAPSHOT_SECONDS = 1.0
SAMPLE_SECONDS = 10.0
"""The interval at which `sample` is called."""

MESSAGES, BYTES, ELAPSED_MS = 0, 1, 2


@attrs.define
class Day:
    """Totals of messages without those of system topics, at the last two mornings (Apache: BrokerStats)."""

    date: datetime.date
    put_this_morning: int = 0
    get_this_morning: int = 0
    put_yesterday_morning: int = 0
    get_yesterday_morning: int = 0


@attrs.define(eq=False)
class BrokerStatistics:
    """Totals since start; `started_seconds` and snapshots are in seconds of the broker's clock.

    Counters by key:

    - `puts` has the queues of each topic, `gets` the queues that a group reads, by "topic@group".
    - `sent_back`, `acks`, `checkpoints` and `conflicts` (of subscriptions) have one counter for each "topic@group".
    - `dead_letters` has one for Apache's own key, see `count_dead_letter`.
    - `activity` counts the events of channels: CONNECT, CLOSE, IDLE, EXCEPTION; `registrations` those of CONSUMER and PRODUCER.
    - `revive_reads` counts reads of the revive log by group, topic, queue of that log and kind (CK, ACK).
    - `revived` counts the messages that came back, by group, topic and status of the put.
    - `sends_together` counts the sends that were processed many at a time, `sends_left` by reason how often one ended that.
    - `commits_together` counts the transactions that were committed many at a time.
    - `rolled_back` counts transactions by topic, `committed` has their age in seconds when they were committed.
    - `creations` has how long requests took that create topics and groups.

    `request_times` is set if metrics are shown: see `measure`. Each send adds to `put_messages` itself.
    `zone` is the time zone of the mornings, None for the machine's zone.
    """

    started_seconds: float
    put_messages: int = 0
    put_failed: int = 0
    sends_together: int = 0
    commits_together: int = 0
    sends_left: collections.Counter[str] = attrs.field(factory=collections.Counter, repr=False)
    get_found: int = 0
    get_missed: int = 0
    get_messages: int = 0
    puts: Puts = attrs.field(factory=Puts, repr=False)
    gets: Gets = attrs.field(factory=Gets, repr=False)
    sent_back: Counters = attrs.field(factory=Counters, repr=False)
    acks: Counters = attrs.field(factory=Counters, repr=False)
    checkpoints: Counters = attrs.field(factory=Counters, repr=False)
    dead_letters: Counters = attrs.field(factory=Counters, repr=False)
    conflicts: Counters = attrs.field(factory=Counters, repr=False)
    activity: Counters = attrs.field(factory=Counters, repr=False)
    registrations: Counters = attrs.field(factory=Counters, repr=False)
    revive_reads: collections.Counter[tuple[str, str, int, str]] = attrs.field(factory=collections.Counter, repr=False)
    revived: collections.Counter[tuple[str, str, str]] = attrs.field(factory=collections.Counter, repr=False)
    rolled_back: collections.Counter[str] = attrs.field(factory=collections.Counter, repr=False)
    committed: Distributions[str] = attrs.field(factory=lambda: Distributions(TRANSACTION_LIMITS_SECONDS), repr=False)
    creations: CreationTimes = attrs.field(factory=CreationTimes, repr=False)
    request_times: RequestTimes | None = None
    zone: datetime.tzinfo | None = None
    day: Day = attrs.field(init=False)
    _whole: dict[str, Counter] = attrs.field(init=False, repr=False)
    _sampler: Sampler = attrs.field(init=False, repr=False)
    _snapshots: deque[tuple[float, dict[str, int]]] = attrs.field(
        factory=lambda: deque(maxlen=WINDOWS_SECONDS[-1] + 1), repr=False
    )

    def __attrs_post_init__(self) -> None:
        self._sampler = Sampler(int(self.started_seconds * 1000))
        self._whole = {name: Counter() for name in _OF_BROKER}
        self.day = Day(self._date(self.started_seconds))
        self.take_snapshot(self.started_seconds)

    @property
    def put_bytes(self) -> int:
        """Return the bytes of the records of all stored messages."""
        return sum(counter.bytes for counter in self.puts.values())

    def measure(self, seconds: Callable[[], float]) -> None:
        """Also record times and sizes from now on; call it before the processors are created."""
        self.request_times = RequestTimes(seconds)

    # counting, outside of the hottest path

    def count_put(self, topic: str, messages: int, size_bytes: int, *, queue_id: int) -> None:
        """Count messages that a request or the broker itself stored."""
        puts = self.puts[topic]
        puts[queue_id].add(messages, size_bytes)
        puts.set_apart(size_bytes)
        self.put_messages += messages

    def count_together(self, places: Places) -> None:
        """Count messages that the broker itself stored in one write."""
        for (topic, queue_id), (times, size_bytes) in places.by_queue.items():
            puts = self.puts[topic]
            counter = puts[queue_id]
            counter.times += times
            counter.bytes += size_bytes
            puts.set_apart(size_bytes, times)
        self.put_messages += len(places)

    def count_send(self, topic: str, messages: int, size_bytes: int, *, queue_id: int) -> None:
        """Count messages that a client's send stored. Most sends count themselves: see SendMessageProcessor."""
        puts = self.puts[topic]
        puts[queue_id].add(messages, size_bytes)
        puts.record(size_bytes, messages)
        self.put_messages += messages

    def count_get(
        self, topic: str, group: str, messages: int, size_bytes: int, *, queue_id: int, elapsed_ms: int = 0
    ) -> None:
        """Count messages that a consumer received, which took `elapsed_ms` to read."""
        self.get_found += 1
        self.get_messages += messages
        self.gets[f"{topic}@{group}"][queue_id].add(messages, size_bytes, elapsed_ms)

    def count_dead_letter(self, owner: str | None, topic: str | None, group: str) -> None:
        """Count a message of a topic that a group gave up; `owner` is the value of the request's field of that name."""
        key = "@".join((str(owner or "null"), str(topic or "null"), group, "SEND_BACK_TO_DLQ"))
        self.dead_letters[key].add(1, 0)

    def forget_topic(self, topic: str) -> None:
        """Forget a deleted topic."""
        self.puts.forget(topic)
        self.rolled_back.pop(topic, None)
        self.committed.pop(topic, None)
        for counters in self._by_group():
            counters.forget_prefix(f"{topic}@")

    def forget_group(self, group: str) -> None:
        """Forget a deleted group."""
        for counters in self._by_group():
            counters.forget_suffix(f"@{group}")

    # rates of totals

    def take_snapshot(self, now_seconds: float) -> None:
        """Record the current totals; called each second."""
        self._snapshots.append((now_seconds, {name: getattr(self, name) for name in _COUNTED}))

    def rate(self, name: str, window_seconds: int) -> float:
        """Return the average per second of a total over a window that ends at the last snapshot; 0.0 without two snapshots."""
        last, totals = self._snapshots[-1]
        index = max(0, len(self._snapshots) - 1 - window_seconds)
        first, before = self._snapshots[index]
        return (totals[name] - before[name]) / (last - first) if last > first else 0.0

    def rates(self, *names: str) -> str:
        """Return the three windows as Apache prints them, "10.0 2.5 0.3"; several totals are added up."""
        return " ".join(str(sum(self.rate(name, window) for name in names)) for window in WINDOWS_SECONDS)

    # counters over a minute, an hour and a day

    def sample(self, now_seconds: float, wall_ms: int) -> Work[None]:
        """Sample the counters in slices, and notice a new day by the time of day; started each 10 s."""
        date = self._date(wall_ms / 1000)
        for name, total in _OF_BROKER.items():
            self._whole[name].more = total(self)
        yield from self._sampler.sample(int(now_seconds * 1000), tuple(self._counters()))
        if date != self.day.date:
            self.day = Day(
                date,
                self.user_messages(self.puts),
                self.user_messages(self.gets),
                self.day.put_this_morning,
                self.day.get_this_morning,
            )

    def topic_put_tps(self, topic: str) -> float:
        """Return the messages per second stored in a topic in the last minute."""
        return self._tps(self.puts.get(topic))

    def group_get_tps(self, group: str, topic: str) -> float:
        """Return the messages per second that a group received of a topic in the last minute."""
        return self._tps(self.gets.get(f"{topic}@{group}"))

    def windows(self, name: str, key: str, cluster: str) -> list[Rate] | None:
        """Return minute, hour and day of Apache's statistic of that name; None if nothing is counted under the key.

        The key is a topic, "topic@group", or for the whole broker the name of its cluster.
        """
        field = MESSAGES
        counter: Named | None = self._whole.get(name) if key == cluster else None
        if name in _BY_KEY:
            find, field = _BY_KEY[name]
            counter = find(self, key)
        elif name in _REGISTRATIONS and key == cluster:
            counter, field = self.registrations.get(_REGISTRATIONS[name]), ELAPSED_MS
        if counter is None:
            return None
        return [self._sampler.rate(counter, window, field) for window in range(3)]

    @staticmethod
    def user_messages(counters: Mapping[str, Named]) -> int:
        """Return the messages without those of system topics."""
        return sum(counter.messages for key, counter in counters.items() if not is_system_topic(key.partition("@")[0]))

    def _tps(self, counter: Named | None) -> float:
        return self._sampler.rate(counter, 0, MESSAGES).tps if counter is not None else 0.0

    def _by_group(self) -> tuple[CountersOf[Any], ...]:
        return self.gets, self.sent_back, self.acks, self.checkpoints, self.conflicts

    def _counters(self) -> Iterator[Counter]:
        others = (self.dead_letters, self.activity, self.registrations, self._whole)
        for counters in (self.puts, *self._by_group(), *others):
            for named in counters.values():
                yield from named.parts

    def _date(self, seconds: float) -> datetime.date:
        return datetime.datetime.fromtimestamp(seconds, self.zone).date()


_COUNTED = (
    "put_messages", "get_found", "get_missed", "get_messages",
)  # fmt: skip


_Find = Callable[[BrokerStatistics, str], Named | None]


def _keyed(counters: str) -> _Find:
    return lambda statistics, key: getattr(statistics, counters).get(key)


def _queue_put(statistics: BrokerStatistics, key: str) -> Counter | None:
    """Find a counter; the key is "topic@queue"."""
    topic, _, queue_id = key.rpartition("@")
    return _of_queue(statistics.puts.get(topic), queue_id)


def _queue_get(statistics: BrokerStatistics, key: str) -> Counter | None:
    """Find a counter; the key is "topic@queue@group"."""
    topic, _, rest = key.partition("@")
    queue_id, _, group = rest.partition("@")
    return _of_queue(statistics.gets.get(f"{topic}@{group}"), queue_id)


def _of_queue(queues: Mapping[int, Counter] | None, queue_id: str) -> Counter | None:
    number = parse_int(queue_id)
    return None if queues is None or number is None else queues.get(number)


def _put_latency(statistics: BrokerStatistics, key: str) -> Counter | None:
    """Find a counter; the key is "queue@topic"."""
    queue_id, _, topic = key.partition("@")
    return _of_queue(statistics.puts.get(topic), queue_id)


def _get_latency(statistics: BrokerStatistics, key: str) -> Counter | None:
    """Find a counter; the key is "queue@topic@group"."""
    queue_id, _, rest = key.partition("@")
    return _of_queue(statistics.gets.get(rest), queue_id)


_BY_KEY: dict[str, tuple[_Find, int]] = {
    "TOPIC_PUT_NUMS": (_keyed("puts"), MESSAGES),
    "TOPIC_PUT_SIZE": (_keyed("puts"), BYTES),
    "TOPIC_PUT_LATENCY": (_put_latency, ELAPSED_MS),
    "QUEUE_PUT_NUMS": (_queue_put, MESSAGES),
    "QUEUE_PUT_SIZE": (_queue_put, BYTES),
    "GROUP_GET_NUMS": (_keyed("gets"), MESSAGES),
    "GROUP_GET_SIZE": (_keyed("gets"), BYTES),
    "GROUP_GET_LATENCY": (_get_latency, ELAPSED_MS),
    "QUEUE_GET_NUMS": (_queue_get, MESSAGES),
    "QUEUE_GET_SIZE": (_queue_get, BYTES),
    "SNDBCK_PUT_NUMS": (_keyed("sent_back"), MESSAGES),
    "SNDBCK2DLQ_TIMES": (_keyed("dead_letters"), MESSAGES),
    "GROUP_ACK_NUMS": (_keyed("acks"), MESSAGES),
    "GROUP_CK_NUMS": (_keyed("checkpoints"), MESSAGES),
    "CHANNEL_ACTIVITY": (_keyed("activity"), MESSAGES),
    "SUBSCRIPTION_CONFLICT_NUMS": (_keyed("conflicts"), MESSAGES),
}
"""Apache's name of a statistic -> the counter to read, and which field of it.

Apache counts by queue only the messages of SCHEDULE_TOPIC_XXXX; here every topic has these counters, and conflicts
of subscriptions are counted. Names that 5.3.3 declares and never sets have no counter: reads from disk, DLQ_PUT_NUMS, the
commercial ones.
"""

_REGISTRATIONS = {"CONSUMER_REGISTER_TIME": "CONSUMER", "PRODUCER_REGISTER_TIME": "PRODUCER"}
"""Names whose key is the cluster's name: the ms that registrations took."""


def _sum(counters: Counters) -> int:
    return sum(counter.messages for counter in counters.values())


_OF_BROKER: dict[str, Callable[[BrokerStatistics], int]] = {
    "BROKER_PUT_NUMS": lambda statistics: statistics.put_messages,
    "BROKER_GET_NUMS": lambda statistics: statistics.get_messages,
    "BROKER_ACK_NUMS": lambda statistics: _sum(statistics.acks),
    "BROKER_CK_NUMS": lambda statistics: _sum(statistics.checkpoints),
    "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC": lambda statistics: statistics.user_messages(statistics.puts),
    "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC": lambda statistics: statistics.user_messages(statistics.gets),
}
"""Apache's statistics of the whole broker, and how each is counted; their key is the cluster's name."""
