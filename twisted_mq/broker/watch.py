"""Tells operators about a running broker in its log: one line when a condition begins, with what to do, and one when it is over.

Every 30 s it checks for a slow disk, slow slaves, memory that peers take, certificates that end, and steps of the clock;
every 60 s for groups that fall behind. Metrics have the same values all the time; these lines are for people who read the
log.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from twisted_mq.broker.metrics.lag import Lag, age, lags
from twisted_mq.config.errors import ConfigError
from twisted_mq.logs import Logger
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.turns import Work

if TYPE_CHECKING:
    from twisted_mq.broker.controller import BrokerController
    from twisted_mq.broker.options import BrokerOptions
    from twisted_mq.encryption.servers import ServerEncryption
    from twisted_mq.protocol.bodies import HAConnectionRuntimeInfo
    from twisted_mq.remoting.budget import Budget

LOOK_SECONDS = 30.0
LAG_SECONDS = 60.0
SLOW_FLUSH_SECONDS = 1.0
BEHIND_MS = 5 * 60_000
"""The limit of the alert GroupFallsBehind in deploy/alerts.yml."""
MOST_NAMED = 10
"""Groups that are named one by one; more are only counted."""
STEP_SECONDS = 1.0
NEARLY_ALL = 0.8
"""The limit of the alert PeersTakeTooMuchMemory."""
SOON_DAYS = 30

Lines = Mapping[str, str]
"""A current condition -> what it means and what to do. The key identifies the condition, and is logged when it is over."""


class Watch:
    """Logs conditions as they begin and end."""

    log = Logger()

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def note(self, kind: str, lines: Lines) -> None:
        """Record that these conditions of a kind hold now, and no others."""
        known = self._known.get(kind, {})
        for key, line in lines.items():
            if key not in known:
                self.log.warn("{line}", line=line)
        for key in known.keys() - lines.keys():
            self.log.info("over: {key}", key=key)
        self._known[kind] = dict(lines)


def slow_disk(longest_seconds: float, path: str) -> Lines:
    """Return a condition if the disk is slow. `longest_seconds` is the longest flush since the last check."""
    if longest_seconds < SLOW_FLUSH_SECONDS:
        return {}
    return {
        "slow disk": f"slow disk: a flush of {path} took {longest_seconds:.1f} s; sends with SYNC_FLUSH wait for it. Check "
        "other programs that write there (iotop) and the disk (iostat -x, smartctl)"
    }


def slow_slaves(slaves: Iterable[HAConnectionRuntimeInfo], most_behind: int) -> Lines:
    """Return the slaves that are too far behind. `most_behind` is haMaxGapNotInSync in bytes."""
    return {
        f"slow slave {one.addr}": f"slow slave: {one.addr} has {one.diff:,} bytes less than this master, more than"
        " haMaxGapNotInSync; its copy no longer counts. Check its disk and the network between them (mqadmin haStatus)"
        for one in slaves
        if one.diff > most_behind
    }


def full_budgets(held: Mapping[str, tuple[int, int]]) -> Lines:
    """Return the budgets that are nearly used up. `held` maps the limit's key to the bytes that peers take, and the limit."""
    return {
        f"memory of {key}": f"memory: peers use {taken:,} of {limit:,} bytes ({key}). Lines 'connection cut' name peers that "
        "do not read answers or send incomplete requests; raise the key if all of them are your clients"
        for key, (taken, limit) in held.items()
        if limit and taken >= limit * NEARLY_ALL
    }


def ending_certificate(path: str, ends: datetime.datetime, now_seconds: float) -> Lines:
    """Return a condition if a certificate of this server ends soon."""
    left = ends - datetime.datetime.fromtimestamp(now_seconds, datetime.UTC)
    if left > datetime.timedelta(days=SOON_DAYS):
        return {}
    return {
        f"certificate {path}": f"certificate: {path} ends on {ends:%Y-%m-%d %H:%M} UTC, in {left.days} days. Replace it: the "
        "new one is loaded automatically"
    }


def lagging(found: Iterable[Lag], now_ms: int) -> Lines:
    """Return the groups whose oldest unread message is older than five minutes."""
    behind = {
        (one.group, one.topic): age(one.oldest_unread_ms, now_ms) // 60_000
        for one in found
        if not one.is_system and age(one.oldest_unread_ms, now_ms) > BEHIND_MS
    }
    worst = sorted(behind, key=lambda key: (-behind[key], key))[:MOST_NAMED]
    lines = {
        f"group {group} on {topic}": f"group behind: {group} is {behind[group, topic]} minutes behind on {topic}. Check its "
        f"members and their speed (mqadmin consumerProgress -g {group}, or the console)"
        for group, topic in worst
    }
    if len(behind) > MOST_NAMED:
        lines["more groups"] = (
            f"groups behind: {len(behind) - MOST_NAMED} others are over 5 minutes behind; mqadmin consumerProgress lists them"
        )
    return lines


class ClockWatch:
    """Compares the time of day with the monotonic clock."""

    log = Logger()

    def __init__(self, wall_ms: Callable[[], int], seconds: Callable[[], float]) -> None:
        self._wall_ms = wall_ms
        self._seconds = seconds
        self._apart = self._apart_now()

    def _apart_now(self) -> float:
        return self._wall_ms() / 1000 - self._seconds()

    def look(self) -> None:
        """Log a step since the last check. Timers do not follow it; times of messages and retention do."""
        before, self._apart = self._apart, self._apart_now()
        step = self._apart - before
        if abs(step) > STEP_SECONDS:
            self.log.warn(
                "clock step: the time of day jumped by {step:+.1f} s. Timers are not affected; message times are, and "
                "retention depends on them. Let chrony slew the clock (makestep only at the start)",
                step=step,
            )


def budgets_of(options: BrokerOptions, unsent: int, incomplete: int, held: int) -> dict[str, tuple[int, int]]:
    """Return the bytes in use and the limit, by the limit's key."""
    return {
        "maxUnsentBytes": (unsent, options.max_unsent_bytes),
        "maxIncompleteBytes": (incomplete, options.max_incomplete_bytes),
        "maxHeldBytes": (held, options.max_held_bytes),
    }


def look_at_lag(broker: BrokerController, watch: Watch) -> Work[None]:
    """Check all groups, in slices."""
    found = yield from lags(broker)
    watch.note("lag", lagging(found, broker.now_ms()))


class OperatorWatch:
    """Checks one running broker for all of these conditions."""

    def __init__(self, broker: BrokerController, budget: Budget[Any], encryption: ServerEncryption | None) -> None:
        self._broker = broker
        self._budget = budget
        self._encryption = encryption
        self._watch = Watch()

    def start(self, every: Callable[[float, Callable[[], object]], object]) -> None:
        """Start the checks as periodic work."""
        broker, watch = self._broker, self._watch
        steps = ClockWatch(broker.wall_ms, broker.clock.seconds)
        every(LOOK_SECONDS, self.look)
        every(LOOK_SECONDS, steps.look)
        every(LAG_SECONDS, lambda: broker.turns.run("watch", look_at_lag(broker, watch)))

    def look(self) -> None:
        """Check the disk, the slaves, the memory that peers take, and the certificate."""
        broker, options, watch, budget = self._broker, self._broker.options, self._watch, self._budget
        if isinstance(broker.store, FileMessageStore):
            watch.note("disk", slow_disk(broker.store.take_longest_flush(), options.commit_log_path))
        slaves = broker.ha.runtime_info().ha_connection_info
        watch.note("slaves", slow_slaves(slaves, options.ha_max_gap_not_in_sync))
        taken = budgets_of(options, budget.unsent_bytes, budget.incomplete_bytes, budget.held_bytes)
        watch.note("memory", full_budgets(taken))
        if self._encryption is not None:
            watch.note("certificate", self._ending_certificate(self._encryption))

    def _ending_certificate(self, encryption: ServerEncryption) -> Lines:
        path = self._broker.options.tls_server_cert_path or ""
        try:
            ends = encryption.certificates_end()
        except ConfigError as error:  # it has ended, or the file is damaged
            return {
                f"certificate {path}": f"certificate: {error}. Replace it with a valid one: it is reloaded automatically"
            }
        return {} if ends is None else ending_certificate(path, ends, self._broker.wall_ms() / 1000)
