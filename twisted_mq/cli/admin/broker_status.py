"""`mqadmin brokerStatus` (Apache: BrokerStatusSubCommand): a broker's figures by name.

A master's slaves are rows too. This project's brokers have them in their table; Apache's are asked for them.
"""

from __future__ import annotations

from twisted_mq.broker.ha.slave_rows import PREFIX, slave_rows
from twisted_mq.cli.admin.calls import AdminContext, broker_names
from twisted_mq.cli.admin.command_line import CommandLine, Option
from twisted_mq.cli.admin.java_format import hash_order
from twisted_mq.protocol.bodies import HARuntimeInfo, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.remoting.errors import RemotingError

OPTIONS = (
    Option("b", "brokerAddr", "ask this broker", group="where"),
    Option("c", "clusterName", "ask all brokers of this cluster, slaves too", group="where"),
)


async def run(admin: AdminContext, line: CommandLine) -> None:
    if "b" in line:
        address = line.value("b").strip()
        for key, value in sorted((await _figures(admin, address)).items()):
            admin.echo(f"{key:<32}: {value}")
        return
    for address in await _addresses(admin, line.value("c").strip()):
        try:
            figures = await _figures(admin, address)
        except (ProtocolError, RemotingError) as error:
            admin.warn(f"no figures from broker {address}: {error}")
            continue
        for key, value in sorted(figures.items()):
            admin.echo(f"{address:<24} {key:<32}: {value}")


async def _addresses(admin: AdminContext, cluster_name: str) -> list[str]:
    """All brokers of a cluster in Apache's order. Raises ClusterUnknown."""
    cluster = await admin.cluster_info()
    brokers = cluster.broker_addr_table or {}
    held = [brokers[name].broker_addrs or {} for name in broker_names(cluster, cluster_name) if name in brokers]
    return hash_order(address for addresses in held for address in addresses.values())


async def _figures(admin: AdminContext, address: str) -> dict[str, str]:
    table = await admin.broker_runtime(address)
    if any(key.startswith(PREFIX) for key in table):
        return table
    try:
        answer = await admin.invoke(address, RequestCode.GET_BROKER_HA_STATUS)
    except BrokerError:  # a broker without replication refuses
        return table
    return table | slave_rows(decode_body(HARuntimeInfo, answer.body))
