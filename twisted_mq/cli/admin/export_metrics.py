"""Implements `mqadmin exportMetrics` (Apache: ExportMetricsCommand): metrics of a cluster's masters, in a JSON file."""

from __future__ import annotations

from collections import Counter
from typing import Any

from twisted_mq.admin.groups import consumer_connection
from twisted_mq.admin.statistics import Counted, stats_of
from twisted_mq.cli.admin.calls import AdminContext, broker_names, cluster_of_line
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.exports import show_written, user_groups, user_topics
from twisted_mq.cli.admin.java_format import parse_number
from twisted_mq.config.properties import property_table
from twisted_mq.protocol.bodies import SubscriptionGroupWrapper
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import HALF_TOPIC, SCHEDULE_TOPIC
from twisted_mq.protocol.names.versions import version_name
from twisted_mq.protocol.wire.command import CURRENT_VERSION
from twisted_mq.remoting.errors import RemotingError

TPS = ("normalInTps", "normalOutTps", "transInTps", "scheduleInTps")
NUMBERS = ("normalOneDayInNum", "normalOneDayOutNum", "transOneDayInNum", "scheduleOneDayInNum")


async def export_metrics(admin: AdminContext, line: CommandLine) -> None:
    cluster, report = await admin.cluster_info(), dict[str, Any]()
    rates, numbers = Counter[str](dict.fromkeys(TPS, 0)), Counter[str](dict.fromkeys(NUMBERS, 0))
    for name in broker_names(cluster, cluster_of_line(line)):
        address = cluster.broker_addr_table[name].broker_addrs.get(MASTER_ID)
        if address is not None:
            report[name] = await _of_broker(admin, address)
            rates.update(report[name]["runtimeQuota"]["tps"])
            numbers.update(report[name]["runtimeQuota"]["oneDayNum"])
    totals = {f"total{name[0].upper()}{name[1:]}": float(rates[name]) for name in TPS}
    total = {"totalTps": totals, "totalOneDayNum": dict(numbers)}
    show_written(admin, line, "metrics.json", {"evaluateReport": report, "totalData": total})


async def _of_broker(admin: AdminContext, address: str) -> dict[str, Any]:
    figures = await admin.broker_runtime(address)
    body = (await admin.invoke(address, RequestCode.GET_BROKER_CONFIG)).body
    settings = property_table(body)
    groups = await user_groups(admin, address)
    return {
        "runtimeEnv": {
            "cpuNum": settings.get("clientCallbackExecutorThreads"),
            "totalMemKBytes": figures.get("totalMemKBytes"),
        },
        "runtimeQuota": await _quota(admin, address, figures, groups),
        "runtimeVersion": {
            "rocketmqVersion": version_name(CURRENT_VERSION),
            "clientInfo": await _clients(admin, groups),
        },
    }


async def _quota(
    admin: AdminContext, address: str, figures: dict[str, str], groups: SubscriptionGroupWrapper
) -> dict[str, Any]:
    """Return disk use, current rates and sums of a day, and the numbers of topics and groups."""
    half = await _counted(admin, address, HALF_TOPIC)
    delayed = await _counted(admin, address, SCHEDULE_TOPIC)
    rates = (_first(figures, "putTps"), _first(figures, "getTransferredTps"), half.rate, delayed.rate)
    numbers = (_of_yesterday(figures, "Put"), _of_yesterday(figures, "Get"), half.in_a_day, delayed.in_a_day)
    topics = await user_topics(admin, address, special=False)
    return {
        "diskRatio": {name: figures.get(name) for name in ("commitLogDiskRatio", "consumeQueueDiskRatio")},
        "tps": dict(zip(TPS, rates, strict=True)),
        "oneDayNum": dict(zip(NUMBERS, numbers, strict=True)),
        "messageAverageSize": figures.get("putMessageAverageSize"),
        "topicSize": len(topics.topic_config_table),
        "groupSize": len(groups.subscription_group_table),
    }


async def _counted(admin: AdminContext, address: str, topic: str) -> Counted:
    data = await stats_of(admin, address, "TOPIC_PUT_NUMS", topic)
    return Counted() if data is None else Counted().plus(data)


def _first(figures: dict[str, str], name: str) -> float:
    """Return the average over ten seconds."""
    averages = figures.get(name, "").split()
    return parse_number(averages[0] if averages else None)


def _of_yesterday(figures: dict[str, str], way: str) -> int:
    today, before = (figures.get(f"msg{way}Total{when}Morning", "0") for when in ("Today", "Yesterday"))
    return int(today) - int(before)


async def _clients(admin: AdminContext, groups: SubscriptionGroupWrapper) -> list[str]:
    """Return languages and versions of all consumers; groups without members add nothing."""
    found: set[str] = set()
    for group in groups.subscription_group_table:
        try:
            members = (await consumer_connection(admin, group)).connection_set
        except (ProtocolError, RemotingError):
            continue
        found |= {f"{one.language}%{version_name(one.version)}" for one in members}
    return sorted(found)
