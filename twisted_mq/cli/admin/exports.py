"""Implements `mqadmin exportConfigs`, `exportMetadata`, `exportMetrics`: settings and metrics of brokers, in a JSON file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import attrs

from twisted_mq.admin.groups import consumer_connection
from twisted_mq.admin.statistics import Counted, stats_of
from twisted_mq.cli.admin.calls import AdminContext, all_addresses, broker_names, cluster_of_line, master_addresses
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.files import write_file
from twisted_mq.cli.admin.java_format import parse_number
from twisted_mq.config.properties import property_table
from twisted_mq.protocol.bodies import (
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigSerializeWrapper,
    TopicList,
    to_value,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import (
    DLQ_PREFIX,
    HALF_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    is_system_topic,
)
from twisted_mq.protocol.names.versions import version_name
from twisted_mq.protocol.wire.command import CURRENT_VERSION
from twisted_mq.remoting.errors import RemotingError

FOLDER = "/tmp/rocketmq/export"
"""The default folder of Apache's tool for its files."""

CONFIG_KEYS = (
    *("brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime", "filterServerNums"),
    *("flushDiskType", "maxMessageSize", "messageDelayLevel", "msgTraceTopicName", "slaveReadEnable", "traceOn"),
    *("traceTopicEnable", "useTLS", "autoCreateTopicEnable", "autoCreateSubscriptionGroup"),
)
"""The settings that are worth comparing between clusters."""

SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
PREDEFINED_GROUPS = frozenset(
    {
        *("DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER"),
        *("__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "SELF_TEST_C_GROUP"),
        *("CID_ONS-HTTP-PROXY", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL", "CID_RMQ_SYS_TRANS"),
    }
)
"""The groups of every broker (MixAll.PREDEFINE_GROUP_SET)."""

PERM_END = 8


def show_written(admin: AdminContext, line: CommandLine, name: str, value: Mapping[str, Any]) -> None:
    """Write the JSON into the folder of -f and show its path."""
    text = json.dumps(value, ensure_ascii=False, indent="\t", sort_keys=True)
    path = write_file(line.value("f") or FOLDER, name, text.encode())
    admin.say(f"export {path} success", exported=path)


async def export_configs(admin: AdminContext, line: CommandLine) -> None:
    cluster, name = await admin.cluster_info(), cluster_of_line(line)
    masters = master_addresses(cluster, name)
    configs = {}
    for address in masters:
        body = (await admin.invoke(address, RequestCode.GET_BROKER_CONFIG)).body
        settings = property_table(body)
        configs[settings["brokerName"]] = {key: settings[key] for key in CONFIG_KEYS if key in settings}
    scale = {
        "namesrvSize": len(admin.name_servers),
        "masterBrokerSize": len(masters),
        "slaveBrokerSize": len(all_addresses(cluster, name)) - len(masters),
    }
    show_written(admin, line, "configs.json", {"brokerConfigs": configs, "clusterScale": scale})


async def user_topics(admin: AdminContext, address: str, *, special: bool) -> TopicConfigSerializeWrapper:
    """Return a broker's topics except its own; retries and dead letters only if `special`."""
    found = await admin.ask(address, TopicConfigAndMappingSerializeWrapper, RequestCode.GET_ALL_TOPIC_CONFIG)
    system = (await admin.ask(address, TopicList, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)).topic_list
    kept = {
        name: config
        for name, config in found.topic_config_table.items()
        if name not in system
        and not is_system_topic(name)
        and (special or not name.startswith((RETRY_PREFIX, DLQ_PREFIX)))
        and 0 <= config.perm < PERM_END
    }
    return TopicConfigSerializeWrapper(topic_config_table=kept, data_version=found.data_version)


async def user_groups(admin: AdminContext, address: str) -> SubscriptionGroupWrapper:
    """Return a broker's groups except those of every broker."""
    found = await admin.ask(address, SubscriptionGroupWrapper, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    kept = {
        name: config
        for name, config in found.subscription_group_table.items()
        if name not in PREDEFINED_GROUPS and not name.startswith(SYSTEM_GROUP_PREFIX)
    }
    return attrs.evolve(found, subscription_group_table=kept)


async def export_metadata(admin: AdminContext, line: CommandLine) -> None:
    special = "s" in line
    if "b" not in line:
        await _of_cluster(admin, line, special)
    elif "t" in line:
        topics = await user_topics(admin, line.value("b"), special=special)
        show_written(admin, line, "topic.json", cast("dict[str, Any]", to_value(topics)))
    elif "g" in line:
        groups = await user_groups(admin, line.value("b"))
        show_written(admin, line, "subscriptionGroup.json", cast("dict[str, Any]", to_value(groups)))


async def _of_cluster(admin: AdminContext, line: CommandLine, special: bool) -> None:
    """Export all masters' settings together: the queues of a topic, and the retry queues of a group, are summed up."""
    topics: dict[str, TopicConfig] = {}
    groups: dict[str, SubscriptionGroupConfig] = {}
    for address in master_addresses(await admin.cluster_info(), cluster_of_line(line)):
        for name, config in (await user_topics(admin, address, special=special)).topic_config_table.items():
            topics[name] = _with_queues(config, topics.get(name))
        for name, group in (await user_groups(admin, address)).subscription_group_table.items():
            held = groups[name].retry_queue_nums if name in groups else 0
            groups[name] = attrs.evolve(group, retry_queue_nums=group.retry_queue_nums + held)
    parts: dict[str, Any] = {"exportTime": admin.now_ms()}
    if "g" not in line or "t" in line:
        parts["topicConfigTable"] = to_value(topics)
    if "t" not in line:
        parts["subscriptionGroupTable"] = to_value(groups)
    name = "topic.json" if "t" in line else "subscriptionGroup.json" if "g" in line else "metadata.json"
    show_written(admin, line, name, parts)


def _with_queues(config: TopicConfig, held: TopicConfig | None) -> TopicConfig:
    if held is None:
        return config
    return attrs.evolve(
        config,
        read_queue_nums=config.read_queue_nums + held.read_queue_nums,
        write_queue_nums=config.write_queue_nums + held.write_queue_nums,
    )


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
