"""What brokers say of themselves: rates, disk, replication."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.admin.at_once import at_once
from twisted_mq.admin.calls import AdminCalls, brokers
from twisted_mq.config.properties import parse_properties
from twisted_mq.protocol.bodies import HARuntimeInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.remoting.errors import RemotingError

MOST = float(1 << 63)
"""No figure is larger: what is counted has 64 bits."""


@attrs.frozen
class BrokerFigures:
    """One broker. `figures` is None, and `problem` says why, where it can't be asked."""

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
        """Messages a second, over the last ten."""
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
        """The used part of the disk."""
        ratio = self.number("commitLogDiskRatio")
        return None if ratio is None or ratio < 0 else ratio

    @property
    def boot_ms(self) -> int | None:
        value = self.number("bootTimestamp")
        return None if value is None else int(value)

    @property
    def oldest_ms(self) -> int | None:
        """When the oldest message was stored; None also where there is none."""
        value = self.number("earliestMessageTimeStamp")
        return None if value is None or value <= 0 else int(value)

    def text(self, name: str) -> str | None:
        return (self.figures or {}).get(name)

    def number(self, name: str) -> float | None:
        """None where the broker says nothing, or no number."""
        return _finite(self.text(name) or "")

    def _rate(self, name: str) -> float | None:
        """The first of the averages over 10 s, 1 min and 10 min."""
        averages = (self.text(name) or "").split()
        return _finite(averages[0]) if averages else None

    def _today(self, way: str) -> int | None:
        now, morning = self.number(f"msg{way}TotalTodayNow"), self.number(f"msg{way}TotalTodayMorning")
        return None if now is None or morning is None else int(now - morning)


def _finite(text: str) -> float | None:
    """None for what is no number that a broker can mean."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) <= MOST else None


async def all_figures(admin: AdminCalls) -> list[BrokerFigures]:
    """Every broker, sorted by cluster, name and id. Raises what the name server's answer does."""
    cluster = await admin.cluster_info()
    known = [BrokerFigures(*one) for one in brokers(cluster, sorted(cluster.cluster_addr_table or {}))]
    return await at_once(lambda one: figures_of(admin, one), known)


async def figures_of(admin: AdminCalls, broker: BrokerFigures) -> BrokerFigures:
    """The same broker with its figures."""
    try:
        return attrs.evolve(broker, figures=await admin.broker_runtime(broker.address))
    except (ProtocolError, RemotingError) as error:
        return attrs.evolve(broker, problem=str(error))


async def replication(admin: AdminCalls, address: str) -> HARuntimeInfo:
    """A master's slaves, or a slave's master. Raises BrokerError where a broker does not replicate."""
    return await admin.ask(address, HARuntimeInfo, RequestCode.GET_BROKER_HA_STATUS)


async def settings_of(admin: AdminCalls, address: str) -> dict[str, str]:
    """A broker's settings by key."""
    answer = await admin.invoke(address, RequestCode.GET_BROKER_CONFIG)
    return {entry.key: entry.value for entry in parse_properties(answer.body)}
