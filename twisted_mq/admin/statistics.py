"""Counters of topics and groups at brokers (Apache: BrokerStatsManager)."""

from __future__ import annotations

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.protocol.bodies import BrokerStatsData, TopicRouteData
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import ViewBrokerStatsDataRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID


@attrs.frozen
class Counted:
    """A counter: its rate in the last minute, per second, and its sum over the last day."""

    rate: float = 0.0
    in_a_day: int = 0

    def plus(self, data: BrokerStatsData) -> Counted:
        """Add another broker's counter. If it has no sum of the day, the hour's or the minute's is added."""
        parts = [part for part in (data.stats_day, data.stats_hour, data.stats_minute) if part is not None]
        minute = 0.0 if data.stats_minute is None else data.stats_minute.tps
        return Counted(self.rate + minute, self.in_a_day + next((part.sum for part in parts if part.sum), 0))


async def counted(admin: AdminCalls, route: TopicRouteData, name: str, key: str) -> Counted:
    """Return the sum of a counter over all masters. A broker without the counter adds nothing."""
    total = Counted()
    for broker in route.broker_datas or ():
        address = (broker.broker_addrs or {}).get(MASTER_ID)
        data = None if address is None else await stats_of(admin, address, name, key)
        total = total if data is None else total.plus(data)
    return total


async def stats_of(admin: AdminCalls, address: str, name: str, key: str) -> BrokerStatsData | None:
    """Return a counter of one broker; None if it has no counter of that key."""
    header = ViewBrokerStatsDataRequestHeader(stats_name=name, stats_key=key)
    try:
        return await admin.ask(address, BrokerStatsData, RequestCode.VIEW_BROKER_STATS_DATA, header)
    except BrokerError:
        return None
