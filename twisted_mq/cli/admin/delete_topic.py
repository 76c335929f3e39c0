"""Implements `mqadmin deleteTopic` (Apache: DeleteTopicSubCommand); an unknown cluster is an error here, not a success."""

from __future__ import annotations

from twisted_mq.cli.admin.calls import AdminContext, master_addresses
from twisted_mq.cli.admin.command_line import CommandLine


async def delete_topic(admin: AdminContext, line: CommandLine) -> None:
    topic, cluster_name = line.value("t"), line.value("c")
    for address in master_addresses(await admin.cluster_info(), cluster_name):
        await admin.delete_topic(address, topic)
    admin.say(f"delete topic [{topic}] from cluster [{cluster_name}] success.", deleted=topic, cluster=cluster_name)
    for name_server in admin.name_servers:
        await admin.delete_route(name_server, cluster_name, topic)
    admin.say(f"delete topic [{topic}] from NameServer success.", deleted=topic, nameServers=admin.name_servers)
