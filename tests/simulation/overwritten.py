"""What neither of two brokers can notice, as the protocol of 5.3.3 has no place for it.

A slave says where its log ends, and nothing of what is in it. Where its master lost what the slave has, and then wrote
records of just that length, it goes on behind them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.simulation.nodes import BrokerNode


def first_difference(ours: Any, theirs: Any, at: int, end: int) -> int | None:
    """Where two stores' logs begin to differ between these offsets, or lack bytes; None where they are the same."""
    while at < end:
        one, other = (bytes(store.read_log(at, end - at) or b"") for store in (ours, theirs))
        size = min(len(one), len(other))
        if not size or one[:size] != other[:size]:
            return at + next((place for place in range(size) if one[place] != other[place]), 0)
        at += size
    return None


class Overwritten:
    """Told of masters' power cuts and of all starts; `emptied` once a slave has another log."""

    def __init__(self) -> None:
        self._ended: dict[str, int] = {}
        self._lost: dict[str, tuple[int, int]] = {}
        self._ends: dict[str, set[int]] = defaultdict(set)

    def power_is_cut(self, master: BrokerNode) -> None:
        self._ended[master.broker_name] = master.store.max_physical_offset()
        self._ends.clear()

    def started(self, broker: BrokerNode, group: list[BrokerNode]) -> None:
        """`group` are its brokers, itself among them."""
        ended = None if broker.is_slave else self._ended.pop(broker.broker_name, None)
        if ended is not None and (end := broker.store.max_physical_offset()) < ended:
            low, high = self._lost.get(broker.broker_name, (end, ended))
            self._lost[broker.broker_name] = min(low, end), max(high, ended)
        for slave in group:
            if slave.is_slave and slave.is_running:
                self._ends[slave.name].add(slave.store.max_physical_offset())

    def emptied(self, slave: BrokerNode) -> None:
        self._ends.pop(slave.name, None)

    def explains(self, master: BrokerNode, slave: BrokerNode, at: int, acknowledged: int) -> bool:
        """Whether the logs differ in nothing else, `at` being where they begin to."""
        low, high = self._lost.get(master.broker_name, (0, 0))
        return low <= at < high and any(
            at < end <= min(high, acknowledged)
            and _is_between_records(master.store, low, end)
            and first_difference(master.store, slave.store, end, acknowledged) is None
            for end in self._ends[slave.name]
        )


def _is_between_records(store: Any, at: int, offset: int) -> bool:
    while at < offset:
        record = store.look_message(at)
        if record is None:
            return False
        at += len(record)
    return at == offset
