"""Implements `mqadmin brokerStatus` (Apache: BrokerStatusSubCommand): a broker's statistics by name.

A master's slaves are rows too. This project's brokers have them in their table; Apache's are asked for them.
"""

from __future__ import annotations

from twisted_mq.broker.ha.slave_rows import PREFIX, slave_rows
from twisted_mq.cli.admin.calls import AdminContext, all_addresses
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.protocol.bodies import HARuntimeInfo, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.remoting.errors import RemotingError


async def broker_status(admin: AdminContext, line: CommandLine) -> None:
    if "b" in line:
        address = line.value("b")
        _show(admin, address, "", await _figures(admin, address))
        return
    for address in all_addresses(await admin.cluster_info(), line.value("c")):
        try:
            figures = await _figures(admin, address)
        except (ProtocolError, RemotingError) as error:
            admin.warn(f"no metrics from broker {address}: {error}")
            continue
        _show(admin, address, f"{address:<24} ", figures)


def _show(admin: AdminContext, address: str, prefix: str, figures: dict[str, str]) -> None:
    lines = [f"{prefix}{key:<32}: {value}" for key, value in sorted(figures.items())]
    admin.say("\n".join(lines), broker=address, figures=figures)


async def _figures(admin: AdminContext, address: str) -> dict[str, str]:
    table = await admin.broker_runtime(address)
    if any(key.startswith(PREFIX) for key in table):
        return table
    try:
        answer = await admin.invoke(address, RequestCode.GET_BROKER_HA_STATUS)
    except BrokerError:  # a broker without replication refuses
        return table
    return table | slave_rows(decode_body(HARuntimeInfo, answer.body))
