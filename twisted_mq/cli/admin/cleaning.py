"""Implements `mqadmin cleanExpiredCQ`, `cleanUnusedTopic`, `deleteExpiredCommitLog`: let brokers delete unneeded files."""

from __future__ import annotations

from twisted_mq.cli.admin.calls import AdminContext, all_addresses
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import hash_order
from twisted_mq.protocol.codes import RequestCode


async def clean_expired_cq(admin: AdminContext, line: CommandLine) -> None:
    await _tell_brokers(admin, line, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)


async def clean_unused_topic(admin: AdminContext, line: CommandLine) -> None:
    await _tell_brokers(admin, line, RequestCode.CLEAN_UNUSED_TOPIC)


async def delete_expired_commit_log(admin: AdminContext, line: CommandLine) -> None:
    await _tell_brokers(admin, line, RequestCode.DELETE_EXPIRED_COMMITLOG)


async def _tell_brokers(admin: AdminContext, line: CommandLine, code: RequestCode) -> None:
    """Tell the broker of -b, or all of the cluster of -c, or all brokers; a refusal is raised."""
    addresses = [line.value("b")] if "b" in line else await _of_clusters(admin, line)
    for address in addresses:
        await admin.invoke(address, code)
    admin.say("success" if addresses else "false", brokers=addresses)


async def _of_clusters(admin: AdminContext, line: CommandLine) -> list[str]:
    cluster = await admin.cluster_info()
    names = [line.value("c")] if line.value("c") else hash_order(cluster.cluster_addr_table or {})
    return [address for name in names for address in all_addresses(cluster, name)]
