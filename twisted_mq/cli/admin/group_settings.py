"""Implements `mqadmin updateSubGroup`, `updateSubGroupList`, `deleteSubGroup`, `getConsumerConfig`, `setConsumeMode`: consumer
groups of brokers.
"""

from __future__ import annotations

from typing import cast

from twisted_mq.admin.calls import select_address
from twisted_mq.cli.admin.calls import AdminContext, all_addresses, chosen_masters
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.files import read_list
from twisted_mq.cli.admin.java_format import hash_order
from twisted_mq.cli.admin.java_text import members_of, value_text
from twisted_mq.cli.admin.topic_list import cluster_of
from twisted_mq.cli.admin.update_topic import parse_attributes
from twisted_mq.protocol.bodies import (
    ClusterInfo,
    SetMessageRequestModeRequestBody,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    SubscriptionGroupWrapper,
    decode_value,
    encode_body,
    to_value,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.headers import DeleteSubscriptionGroupRequestHeader
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX
from twisted_mq.protocol.text import fastjson
from twisted_mq.protocol.text.json_value import Json

MODES = ("PULL", "POP")


async def update_sub_group_list(admin: AdminContext, line: CommandLine) -> None:
    groups = SubscriptionGroupList(read_list(SubscriptionGroupConfig, line.value("f")))
    words = "batch of group config" if "b" in line else "batch of subscription group config"
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=encode_body(groups))
        admin.say(
            f"submit {words} to {address} success, please check the result later.",
            broker=address,
            groups=[group.group_name for group in groups.group_config_list],
        )


async def delete_sub_group(admin: AdminContext, line: CommandLine) -> None:
    group = line.value("g")
    header = DeleteSubscriptionGroupRequestHeader(group_name=group, clean_offset=line.is_true("r"))
    where = "" if "b" in line else f" in cluster [{line.value('c')}]"
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
        admin.say(
            f"delete subscription group [{group}] from broker [{address}]{where} success.",
            deleted=group,
            broker=address,
        )
    if "b" not in line:
        await _delete_topics(admin, line.value("c"), group)


async def _delete_topics(admin: AdminContext, cluster_name: str, group: str) -> None:
    """Delete the topics of the group's retries and dead letters, at all brokers and name servers."""
    addresses = all_addresses(await admin.cluster_info(), cluster_name)
    for topic in (RETRY_PREFIX + group, DLQ_PREFIX + group):
        for address in addresses:
            await admin.delete_topic(address, topic)
        for name_server in admin.name_servers:
            await admin.delete_route(name_server, cluster_name, topic)


async def get_consumer_config(admin: AdminContext, line: CommandLine) -> None:
    cluster = await admin.cluster_info()
    brokers = cluster.broker_addr_table or {}
    for broker_name in hash_order(brokers):
        address = select_address(brokers[broker_name].broker_addrs)
        if address is None:
            continue
        found = await admin.ask(address, SubscriptionGroupWrapper, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        config = found.subscription_group_table.get(line.value("g"))
        if config is not None:
            _show(admin, cluster, broker_name, config)


def _show(admin: AdminContext, cluster: ClusterInfo, broker_name: str, config: SubscriptionGroupConfig) -> None:
    cluster_name, rule = cluster_of(broker_name, cluster), "=" * 29
    settings = members_of(config)
    lines = [f"{name:<40}=  {'' if value is None else value_text(value)}" for name, value in settings.items()]
    admin.say(
        "\n".join([f"{rule}{cluster_name}:{broker_name}{rule}", *lines]),
        cluster=cluster_name,
        broker=broker_name,
        config=cast(Json, to_value(config)),
    )


async def set_consume_mode(admin: AdminContext, line: CommandLine) -> None:
    topic, group, mode, share = line.value("t"), line.value("g"), line.value("m"), line.number("q", 0)
    if mode not in MODES:
        raise UsageError(f"Option -m must be {' or '.join(MODES)}, got {mode!r}")
    body = SetMessageRequestModeRequestBody(topic, group, mode, share)
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(body))
        admin.say(f"set consume mode to {address} success.", broker=address)
    admin.say(
        f"topic[{topic}] group[{group}] consume mode[{mode}] popShareQueueNum[{share}]",
        topic=topic, group=group, mode=mode, popShareQueueNum=share,
    )  # fmt: skip


SWITCHES = {
    "s": "consumeEnable",
    "m": "consumeFromMinEnable",
    "d": "consumeBroadcastEnable",
    "o": "consumeMessageOrderly",
    "a": "notifyConsumerIdsChangedEnable",
}
NUMBERS = {
    "q": "retryQueueNums",
    "r": "retryMaxTimes",
    "i": "brokerId",
    "w": "whichBrokerWhenConsumeSlowly",
}
"""Letters of options and the members that they set."""


async def update_sub_group(admin: AdminContext, line: CommandLine) -> None:
    config = read_group(line)
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(config))
        admin.say(f"create subscription group to {address} success.", broker=address)
    admin.say_value(value_text(config), cast("dict[str, Json]", to_value(config)))


def read_group(line: CommandLine) -> SubscriptionGroupConfig:
    """Return the group that the options describe, otherwise as Apache's tool makes it. Raises UsageError."""
    value: dict[str | int, fastjson.Json] = {
        "groupName": line.value("g"),
        "consumeBroadcastEnable": False,
        "consumeFromMinEnable": False,
        **{name: line.is_true(key) for key, name in SWITCHES.items() if key in line},
        **{name: line.number(key, 0) for key, name in NUMBERS.items() if key in line},
    }
    if "attributes" in line:
        attributes = parse_attributes(line.value("attributes"), "--attributes")
        value["attributes"] = dict(attributes.items())
    try:
        if "p" in line:
            value["groupRetryPolicy"] = fastjson.loads(line.value("p").encode())
        return decode_value(SubscriptionGroupConfig, value)
    except BodyError as error:
        raise UsageError(f"Option -p: {error}") from None
