"""What the broker has done: totals that the hot paths count up, rates of the totals, and counters by topic and group.

Apache: StoreStatsService, BrokerStats, BrokerStatsManager. Rates of totals are messages (or calls) a second over the
last 10 s, 1 min and 10 min, as far back as the broker runs, from a snapshot each second; counters by topic and group
are sampled each 10 s, see `counters`.
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Iterator

import attrs

from twisted_mq.broker.call_times import CallTimes
from twisted_mq.broker.counters import Counter, Counters, Rate, Sampler
from twisted_mq.broker.topic_validator import is_system_topic

WINDOWS_SECONDS = (10, 60, 600)
SNAPSHOT_SECONDS = 1.0
SAMPLE_SECONDS = 10.0
"""How often `sample` is called."""

MESSAGES, BYTES = 0, 1


@attrs.define
class Day:
    """Totals of messages without those of system topics, at this morning and the one before (Apache: BrokerStats)."""

    date: datetime.date
    put_this_morning: int = 0
    get_this_morning: int = 0
    put_yesterday_morning: int = 0
    get_yesterday_morning: int = 0


@attrs.define(eq=False)
class BrokerStatistics:
    """Totals since start; `started_seconds` and snapshots are in seconds of the broker's clock.

    `puts` has a counter for each topic; `gets`, `sent_back`, `acks` and `checkpoints` for each "topic@group". `zone` is
    where mornings begin, None for the machine's zone.
    """

    started_seconds: float
    put_messages: int = 0
    put_bytes: int = 0
    put_failed: int = 0
    get_found: int = 0
    get_missed: int = 0
    get_messages: int = 0
    get_bytes: int = 0
    puts: Counters = attrs.field(factory=Counters, repr=False)
    gets: Counters = attrs.field(factory=Counters, repr=False)
    sent_back: Counters = attrs.field(factory=Counters, repr=False)
    acks: Counters = attrs.field(factory=Counters, repr=False)
    checkpoints: Counters = attrs.field(factory=Counters, repr=False)
    put_times: CallTimes = attrs.field(factory=CallTimes, repr=False)
    get_times: CallTimes = attrs.field(factory=CallTimes, repr=False)
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

    # counting, outside of the hottest path

    def count_put(self, topic: str, messages: int, size_bytes: int) -> None:
        """A request or the broker itself stored messages."""
        self.put_messages += messages
        self.put_bytes += size_bytes
        self.puts[topic].add(messages, size_bytes)

    def count_get(self, topic: str, group: str, messages: int, size_bytes: int) -> None:
        """A consumer was handed messages."""
        self.get_found += 1
        self.get_messages += messages
        self.get_bytes += size_bytes
        self.gets[f"{topic}@{group}"].add(messages, size_bytes)

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted."""
        self.puts.forget(topic)
        for counters in self._by_group():
            counters.forget_prefix(f"{topic}@")

    def forget_group(self, group: str) -> None:
        """A group was deleted."""
        for counters in self._by_group():
            counters.forget_suffix(f"@{group}")

    # rates of totals

    def take_snapshot(self, now_seconds: float) -> None:
        """Remember the totals of this moment, and time the next calls; called each second."""
        self.put_times.arm()
        self.get_times.arm()
        self._snapshots.append((now_seconds, {name: getattr(self, name) for name in _COUNTED}))

    def rate(self, name: str, window_seconds: int) -> float:
        """Average a second of a total over a window that ends at the last snapshot; 0.0 without two snapshots."""
        last, totals = self._snapshots[-1]
        index = max(0, len(self._snapshots) - 1 - window_seconds)
        first, before = self._snapshots[index]
        return (totals[name] - before[name]) / (last - first) if last > first else 0.0

    def rates(self, *names: str) -> str:
        """The three windows as Apache prints them, "10.0 2.5 0.3"; several totals are added up."""
        return " ".join(str(sum(self.rate(name, window) for name in names)) for window in WINDOWS_SECONDS)

    # counters over a minute, an hour and a day

    def sample(self, now_seconds: float) -> None:
        """Sample the counters and notice a new day; called each 10 s."""
        for name, total in _OF_BROKER.items():
            self._whole[name].messages = total(self)
        self._sampler.sample(int(now_seconds * 1000), self._counters())
        if self._date(now_seconds) != self.day.date:
            self.day = Day(
                self._date(now_seconds),
                self.user_messages(self.puts),
                self.user_messages(self.gets),
                self.day.put_this_morning,
                self.day.get_this_morning,
            )

    def topic_put_tps(self, topic: str) -> float:
        """Messages a second that a topic took in the last minute."""
        return self._tps(self.puts.get(topic))

    def group_get_tps(self, group: str, topic: str) -> float:
        """Messages a second that a group was handed of a topic in the last minute."""
        return self._tps(self.gets.get(f"{topic}@{group}"))

    def windows(self, name: str, key: str, cluster: str) -> list[Rate] | None:
        """Minute, hour and day of Apache's statistic of that name; None where nothing is counted under the key.

        The key is a topic, "topic@group", or for the whole broker the name of its cluster.
        """
        field = BYTES if name.endswith("_SIZE") else MESSAGES
        counter = self._whole.get(name) if key == cluster else None
        if name in _BY_KEY:
            counter = getattr(self, _BY_KEY[name]).get(key)
        if counter is None:
            return None
        return [self._sampler.rate(counter, window, field) for window in range(3)]

    @staticmethod
    def user_messages(counters: Counters) -> int:
        """Messages without those of system topics."""
        return sum(counter.messages for key, counter in counters.items() if not is_system_topic(key.partition("@")[0]))

    def _tps(self, counter: Counter | None) -> float:
        return self._sampler.rate(counter, 0, MESSAGES).tps if counter is not None else 0.0

    def _by_group(self) -> tuple[Counters, ...]:
        return self.gets, self.sent_back, self.acks, self.checkpoints

    def _counters(self) -> Iterator[Counter]:
        for counters in (self.puts, *self._by_group(), self._whole):
            yield from counters.values()

    def _date(self, seconds: float) -> datetime.date:
        return datetime.datetime.fromtimestamp(seconds, self.zone).date()


_COUNTED = (
    "put_messages", "put_bytes", "get_found", "get_missed", "get_messages", "get_bytes",
)  # fmt: skip

_BY_KEY = {
    "TOPIC_PUT_NUMS": "puts",
    "TOPIC_PUT_SIZE": "puts",
    "GROUP_GET_NUMS": "gets",
    "GROUP_GET_SIZE": "gets",
    "SNDBCK_PUT_NUMS": "sent_back",
    "GROUP_ACK_NUMS": "acks",
    "GROUP_CK_NUMS": "checkpoints",
}
"""Apache's name of a statistic, and the counters it is read from."""


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
