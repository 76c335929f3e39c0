"""Requests about a broker as a whole: configuration, statistics, high availability."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.fields import int64, text


@attrs.frozen(kw_only=True)
class GetBrokerConfigResponseHeader:
    """Answer to GET_BROKER_CONFIG."""

    version: str = field(metadata=text("version"))


@attrs.frozen(kw_only=True)
class ViewBrokerStatsDataRequestHeader:
    """Request of VIEW_BROKER_STATS_DATA."""

    stats_name: str = field(metadata=text("statsName"))
    stats_key: str = field(metadata=text("statsKey"))


@attrs.frozen(kw_only=True)
class ExportRocksDBConfigToJsonRequestHeader:
    """Request of EXPORT_ROCKSDB_CONFIG_TO_JSON."""

    config_type: str = field(metadata=text("configType"))


@attrs.frozen(kw_only=True)
class ExchangeHAInfoRequestHeader:
    """Request of EXCHANGE_BROKER_HA_INFO."""

    master_ha_address: str | None = field(default=None, metadata=text("masterHaAddress"))
    master_flush_offset: int | None = field(default=None, metadata=int64("masterFlushOffset"))
    master_address: str | None = field(default=None, metadata=text("masterAddress"))


@attrs.frozen(kw_only=True)
class ExchangeHAInfoResponseHeader:
    """Answer to EXCHANGE_BROKER_HA_INFO."""

    master_ha_address: str | None = field(default=None, metadata=text("masterHaAddress"))
    master_flush_offset: int | None = field(default=None, metadata=int64("masterFlushOffset"))
    master_address: str | None = field(default=None, metadata=text("masterAddress"))


@attrs.frozen(kw_only=True)
class ResetMasterFlushOffsetHeader:
    """Request of RESET_MASTER_FLUSH_OFFSET."""

    master_flush_offset: int = field(metadata=int64("masterFlushOffset"))


@attrs.frozen(kw_only=True)
class NotifyMinBrokerIdChangeRequestHeader:
    """Request of NOTIFY_MIN_BROKER_ID_CHANGE."""

    min_broker_id: int | None = field(default=None, metadata=int64("minBrokerId"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    min_broker_addr: str | None = field(default=None, metadata=text("minBrokerAddr"))
    offline_broker_addr: str | None = field(default=None, metadata=text("offlineBrokerAddr"))
    ha_broker_addr: str | None = field(default=None, metadata=text("haBrokerAddr"))
