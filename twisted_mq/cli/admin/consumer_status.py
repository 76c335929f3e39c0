"""Implements `mqadmin consumerStatus` (Apache: ConsumerStatusSubCommand): the reports of a group's members."""

from __future__ import annotations

from typing import cast

from twisted_mq.admin.groups import consumer_connection, running_info, same_subscriptions
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.files import file_name, write_file
from twisted_mq.cli.admin.running_text import complaints, running_text
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.protocol.bodies import Connection, ConsumerRunningInfo, to_value
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.versions import version_name
from twisted_mq.protocol.text.json_value import Json
from twisted_mq.remoting.errors import RemotingError

MEMBERS = TextTable.of(
    "{:<10} {:<40} {:<20} {}",
    index="#Index",
    clientId="#ClientId",
    version="#Version",
    file="#ConsumerRunningInfoFile",
)


async def consumer_status(admin: AdminContext, line: CommandLine) -> None:
    group, with_threads = line.value("g"), "s" in line
    if "i" in line:
        info = await running_info(admin, group, line.value("i"), with_threads=with_threads)
        admin.say(running_text(info), clientId=line.value("i"), subscriptions=_subscriptions(info))
        return
    found = await consumer_connection(admin, group, line.value("b") or None)
    infos = await _write_infos(admin, group, found.connection_set, with_threads)
    if infos:
        _judge(admin, infos)


def _subscriptions(info: ConsumerRunningInfo) -> Json:
    return cast(Json, [to_value(one) for one in info.subscription_set])


async def _write_infos(
    admin: AdminContext, group: str, members: list[Connection], with_threads: bool
) -> dict[str, ConsumerRunningInfo]:
    """Write each member's report to a file below the working directory, as Apache's tool does."""
    folder, infos = str(admin.now_ms()), dict[str, ConsumerRunningInfo]()
    admin.say(MEMBERS.head)
    for member in members:
        try:
            info = await running_info(admin, group, member.client_id, with_threads=with_threads)
        except (ProtocolError, RemotingError) as error:
            admin.warn(f"{member.client_id}: {error}")
            continue
        infos[member.client_id] = info
        path = write_file(folder, file_name(member.client_id), running_text(info).encode())
        admin.row(MEMBERS, len(infos), member.client_id, version_name(member.version), path)
    return infos


def _judge(admin: AdminContext, infos: dict[str, ConsumerRunningInfo]) -> None:
    """Report whether the members agree, and what is wrong with their queues."""
    now_ms = admin.now_ms()
    if not same_subscriptions(infos, now_ms):
        admin.say("\n\nWARN: Different subscription in the same group of consumer!!!", sameSubscription=False)
        return
    admin.say("\n\nSame subscription in the same group of consumer", sameSubscription=True)
    admin.say("\n\nRebalance OK")
    for client_id in sorted(infos):
        for text in complaints(client_id, infos[client_id], now_ms):
            admin.say(text, clientId=client_id, complaint=text)
