"""Metrics and settings that brokers report: rates, disk, replication."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.admin.calls import AdminCalls, brokers
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.config.properties import parse_properties
from twisted_mq.protocol.bodies import HARuntimeInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.remoting.errors import RemotingError

MOST = float(1 << 63)
"""The largest valid metric: counters have 64 bits."""


@attrs.frozen
class BrokerFigures:
    """A broker with its runtime metrics. If it can't be asked, `figures` is None and `problem` has the reason."""

    cluster: str
    name: str
    broker_id: int
    address: str
    figures: Mapping[str, str] | None = None
    problem: str | None = None

    @property
    def is_master(self) -> bool:
        return self.broker_id == MASTER_ID

    @property
    def version(self) -> str | None:
        return self.text("brokerVersionDesc")

    @property
    def in_rate(self) -> float | None:
        """Messages received per second, averaged over 10 s."""
        return self._rate("putTps")

    @property
    def out_rate(self) -> float | None:
        return self._rate("getTransferredTps")

    @property
    def in_today(self) -> int | None:
        return self._today("Put")

    @property
    def out_today(self) -> int | None:
        return self._today("Get")

    @property
    def disk_ratio(self) -> float | None:
        """The used part of the commit log's disk, from 0 to 1; None if unknown."""
        ratio = self.number("commitLogDiskRatio")
        return None if ratio is None or ratio < 0 else ratio

    @property
    def boot_ms(self) -> int | None:
        value = self.number("bootTimestamp")
        return None if value is None else int(value)

    @property
    def oldest_ms(self) -> int | None:
        """The time when the oldest message was stored, in ms since 1970; None if unknown or without messages."""
        value = self.number("earliestMessageTimeStamp")
        return None if value is None or value <= 0 else int(value)

    def text(self, name: str) -> str | None:
        return (self.figures or {}).get(name)

    def number(self, name: str) -> float | None:
        """Return a metric as a number; None if the broker does not report it, or it is not a number."""
        return _finite(self.text(name) or "")

    def _rate(self, name: str) -> float | None:
        """Return the first of the averages over 10 s, 1 min and 10 min."""
        averages = (self.text(name) or "").split()
        return _finite(averages[0]) if averages else None

    def _today(self, way: str) -> int | None:
        now, morning = self.number(f"msg{way}TotalTodayNow"), self.number(f"msg{way}TotalTodayMorning")
        return None if now is None or morning is None else int(now - morning)


def _finite(text: str) -> float | None:
    """Parse a number; None if the text is not a number, or out of range."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) <= MOST else None


async def all_figures(admin: AdminCalls) -> list[BrokerFigures]:
    """Return every broker with its metrics, sorted by cluster, name and id. Raises if the name server's request fails."""
    cluster = await admin.cluster_info()
    known = [BrokerFigures(*one) for one in brokers(cluster, sorted(cluster.cluster_addr_table or {}))]
    return await concurrently(lambda one: figures_of(admin, one), known)


async def figures_of(admin: AdminCalls, broker: BrokerFigures) -> BrokerFigures:
    """Return the broker with its metrics filled in, or with the problem."""
    try:
        return attrs.evolve(broker, figures=await admin.broker_runtime(broker.address))
    except (ProtocolError, RemotingError) as error:
        return attrs.evolve(broker, problem=str(error))


async def replication(admin: AdminCalls, address: str) -> HARuntimeInfo:
    """Return a master's slaves, or a slave's master. Raises BrokerError if the broker does not replicate."""
    return await admin.ask(address, HARuntimeInfo, RequestCode.GET_BROKER_HA_STATUS)


async def settings_of(admin: AdminCalls, address: str) -> dict[str, str]:
    """Return a broker's settings, by key."""
    answer = await admin.invoke(address, RequestCode.GET_BROKER_CONFIG)
    return {entry.key: entry.value for entry in parse_properties(answer.body)}
