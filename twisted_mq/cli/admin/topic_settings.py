"""`mqadmin updateTopicPerm`, `updateTopicList`, `updateOrderConf`, `topicClusterList`, `allocateMQ`, `deleteTopic`."""

from __future__ import annotations

from typing import cast

from twisted_mq.admin.queues import readable_queues
from twisted_mq.cli.admin.calls import AdminContext, chosen_masters, master_addresses
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.files import read_list
from twisted_mq.cli.admin.java_format import hash_order, text_or_null
from twisted_mq.cli.admin.update_topic import GivenTopicSettings
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import CreateTopicListRequestBody, TopicConfig, TopicRouteData, encode_body, to_value
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import CreateTopicListRequestHeader, DeleteKVConfigRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID, ORDER_TOPIC_CONFIG
from twisted_mq.protocol.text.fastjson import dumps
from twisted_mq.protocol.text.json_value import Json
from twisted_mq.routing.allocate_strategies import allocate_averagely


async def update_topic_perm(admin: AdminContext, line: CommandLine) -> None:
    route, perm = await admin.topic_route(line.value("t")), line.number("p", 6)
    if not route.queue_datas:
        raise CliError(f"topic {line.value('t')} has no queues")
    first = route.queue_datas[0]
    settings = GivenTopicSettings(
        topic=line.value("t"),
        read_queues=first.read_queue_nums,
        write_queues=first.write_queue_nums,
        perm=perm,
        sys_flag=first.topic_sys_flag,
        order=False,
        attributes={},
    )
    old = _perm_at(route, line.value("b")) if "b" in line else first.perm
    if "b" in line and old == perm:
        admin.say("new perm equals to the old one!", perm=perm)
        return
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_TOPIC, settings.header())
        admin.say(
            f"update topic perm from {old} to {perm} in {address} success.", broker=address, before=old, perm=perm
        )
    admin.say(f"{settings}." if "b" in line else None)


def _perm_at(route: TopicRouteData, address: str) -> int:
    """Return the topic's permission at a master. Raises CliError for an address that is not one of its masters."""
    for broker in route.broker_datas or ():
        if (broker.broker_addrs or {}).get(MASTER_ID) == address:
            return next((data.perm for data in route.queue_datas if data.broker_name == broker.broker_name), 0)
    raise CliError("updateTopicPerm error broker not exit or broker is not master!")


async def update_topic_list(admin: AdminContext, line: CommandLine) -> None:
    topics = CreateTopicListRequestBody(read_list(TopicConfig, line.value("f")))
    header = CreateTopicListRequestHeader()
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, header, encode_body(topics))
        admin.say(
            f"submit batch of topic config to {address} success, please check the result later.",
            broker=address,
            topics=[topic.topic_name for topic in topics.topic_config_list],
        )


async def update_order_conf(admin: AdminContext, line: CommandLine) -> None:
    topic, method = line.value("t"), line.value("m")
    if method == "get":
        setting = await admin.order_setting(topic)
        admin.say(f"get orderConf success. topic=[{topic}], orderConf=[{text_or_null(setting)}] ",
                  topic=topic, orderConf=setting)  # fmt: skip
    elif method == "put":
        setting = line.value("v")
        if not setting:
            raise UsageError("please set orderConf with option -v.")
        await admin.put_order_setting(topic, setting)
        admin.say(f"update orderConf success. topic=[{topic}], orderConf=[{setting}]", topic=topic, orderConf=setting)
    elif method == "delete":
        header = DeleteKVConfigRequestHeader(namespace=ORDER_TOPIC_CONFIG, key=topic)
        await admin.tell_name_servers(RequestCode.DELETE_KV_CONFIG, header)
        admin.say(f"delete orderConf success. topic=[{topic}]", deleted=topic)
    else:
        raise UsageError(f"Option -m must be get, put or delete, got {method!r}")


async def topic_cluster_list(admin: AdminContext, line: CommandLine) -> None:
    clusters = (await admin.cluster_info()).cluster_addr_table or {}
    brokers = (await admin.topic_route(line.value("t"))).broker_datas
    first = brokers[0].broker_name if brokers else ""
    for name in hash_order(name for name, members in clusters.items() if first in members):
        admin.say(name, cluster=name)


async def allocate_mq(admin: AdminContext, line: CommandLine) -> None:
    """Show which consumer would get which queue if these were all consumers."""
    queues = readable_queues(line.value("t"), await admin.topic_route(line.value("t")))
    consumers = line.parts("i")
    result = {one: [to_value(queue) for queue in allocate_averagely(one, queues, consumers)] for one in consumers}
    admin.say(dumps({"result": result}, sort=False).decode(), result=cast(Json, result))


async def delete_topic(admin: AdminContext, line: CommandLine) -> None:
    """Delete a topic (Apache: DeleteTopicSubCommand); an unknown cluster is an error here, not a success."""
    topic, cluster_name = line.value("t"), line.value("c")
    for address in master_addresses(await admin.cluster_info(), cluster_name):
        await admin.delete_topic(address, topic)
    admin.say(f"delete topic [{topic}] from cluster [{cluster_name}] success.", deleted=topic, cluster=cluster_name)
    for name_server in admin.name_servers:
        await admin.delete_route(name_server, cluster_name, topic)
    admin.say(f"delete topic [{topic}] from NameServer success.", deleted=topic, nameServers=admin.name_servers)
