"""`mqadmin updateTopic` (Apache: UpdateTopicSubCommand, AttributeParser)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.cli.admin.calls import AdminContext, broker_names, master_addresses
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.java_format import hash_order, map_text
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import ClusterInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import TopicSysFlag, perm_text
from twisted_mq.protocol.headers import CreateTopicRequestHeader
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC

PERM_END = 8
"""Permissions below this are sent (PermName.isValid); the broker has the last word."""


@attrs.frozen
class GivenTopicSettings:
    """The settings on the command line."""

    topic: str
    read_queues: int
    write_queues: int
    perm: int
    sys_flag: int
    order: bool
    attributes: dict[str, str]

    def __str__(self) -> str:
        return (
            f"TopicConfig [topicName={self.topic}, readQueueNums={self.read_queues}, "
            f"writeQueueNums={self.write_queues}, perm={perm_text(self.perm)}, topicFilterType=SINGLE_TAG, "
            f"topicSysFlag={self.sys_flag}, order={'true' if self.order else 'false'}, "
            f"attributes={map_text(self.attributes)}]"
        )

    def header(self) -> CreateTopicRequestHeader:
        """Return the request's header."""
        return CreateTopicRequestHeader(
            topic=self.topic,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=self.read_queues,
            write_queue_nums=self.write_queues,
            perm=self.perm,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=self.sys_flag,
            order=self.order,
            attributes=attributes_text(self.attributes),
        )


async def update_topic(admin: AdminContext, line: CommandLine) -> None:
    settings = read_settings(line)
    if "b" in line:
        await _at_broker(admin, settings, line.value("b"))
    else:
        await _in_cluster(admin, settings, line.value("c"))
    admin.say(str(settings), **attrs.asdict(settings))


async def _at_broker(admin: AdminContext, settings: GivenTopicSettings, address: str) -> None:
    await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_TOPIC, settings.header())
    if settings.order:
        name = broker_name_of(await admin.cluster_info(), address)
        entry = f"{name}:{settings.write_queues}"
        merged = merge_order(await admin.order_setting(settings.topic), entry)
        await admin.put_order_setting(settings.topic, merged)
        admin.say(f"set broker orderConf. isOrder=true, orderConf=[{entry}]", order=merged)
    admin.say(f"create topic to {address} success.", broker=address)


async def _in_cluster(admin: AdminContext, settings: GivenTopicSettings, cluster_name: str) -> None:
    cluster = await admin.cluster_info()
    for address in master_addresses(cluster, cluster_name):
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_TOPIC, settings.header())
        admin.say(f"create topic to {address} success.", broker=address)
    if settings.order:
        names = broker_names(cluster, cluster_name)
        setting = ";".join(f"{name}:{settings.write_queues}" for name in names)
        await admin.put_order_setting(settings.topic, setting)
        admin.say(f"set cluster orderConf. isOrder=true, orderConf=[{setting}]", order=setting)


def read_settings(line: CommandLine) -> GivenTopicSettings:
    """Return the topic that the options describe. Raises UsageError."""
    perm = line.number("p", 6)
    if not 0 <= perm < PERM_END:
        raise UsageError(f"Option -p must be 2 (write), 4 (read) or 6 (both), got {perm}")
    unit, unit_sub = line.is_true("u"), line.is_true("s")
    return GivenTopicSettings(
        topic=line.value("t"),
        read_queues=line.number("r", 8),
        write_queues=line.number("w", 8),
        perm=perm,
        sys_flag=TopicSysFlag.FLAG_UNIT * unit | TopicSysFlag.FLAG_UNIT_SUB * unit_sub,
        order=line.is_true("o"),
        attributes=parse_attributes(line.value("a")),
    )


def parse_attributes(text: str, option: str = "-a") -> dict[str, str]:
    """Return "+a=1,-b" as {"+a": "1", "-b": ""}. Raises UsageError."""
    attributes: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        sign = "+" if equals else "-"
        if sign not in key:
            raise UsageError(f"Option {option}: {part!r} must be +key=value or -key")
        if key in attributes:
            raise UsageError(f"Option {option}: {key!r} is given more than once")
        attributes[key] = value
    return attributes


def attributes_text(attributes: Mapping[str, str]) -> str:
    """Return the attributes as the header carries them."""
    keys = hash_order(attributes)
    return ",".join(f"{key}={attributes[key]}" if attributes[key] else key for key in keys)


def merge_order(held: str | None, entry: str) -> str:
    """Return an order setting with a broker's entry added; entries are separated by semicolons."""
    entries = {part.split(":")[0]: part for part in (held or "").split(";") if part.strip()}
    entries[entry.split(":")[0]] = entry
    return ";".join(entries[name] for name in hash_order(entries))


def broker_name_of(cluster: ClusterInfo, address: str) -> str:
    """Return the name of the broker that announced an address. Raises CliError."""
    for name, data in (cluster.broker_addr_table or {}).items():
        if address in (data.broker_addrs or {}).values():
            return name
    raise CliError(f"no broker is registered at {address}", "`mqadmin clusterList` lists the addresses")
