"""Shows counters over a minute, an hour and a day: code 315 (Apache: AdminBrokerProcessor.ViewBrokerStatsData)."""

from __future__ import annotations

from typing import Protocol

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.protocol.bodies import BrokerStatsData, BrokerStatsItem, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import ViewBrokerStatsDataRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel


class BrokerStatsParts(Protocol):
    """The parts of the broker that questions about statistics use."""

    options: BrokerOptions
    statistics: BrokerStatistics


class BrokerStatsProcessor:
    """Shows one statistic by its name and key."""

    def __init__(self, broker: BrokerStatsParts) -> None:
        self._options = broker.options
        self._statistics = broker.statistics
        self.processors = {RequestCode.VIEW_BROKER_STATS_DATA: self.stats}

    def stats(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return sum, rate per second and average per request; SYSTEM_ERROR if nothing was counted under the key."""
        header = decode_header(ViewBrokerStatsDataRequestHeader, command)
        cluster = self._options.broker_cluster_name
        windows = self._statistics.windows(header.stats_name, header.stats_key, cluster)
        if windows is None:
            remark = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
            raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
        minute, hour, day = (BrokerStatsItem(sum=one.sum, tps=one.tps, avgpt=one.average) for one in windows)
        return command.answer(body=encode_body(BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)))
