"""Provides what subcommands work with: requests with answers in Apache's order, output, and the brokers that a line names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.java_format import hash_order
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import json_line
from twisted_mq.protocol.bodies import ClusterInfo
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.text.json_value import Json


class ClusterUnknown(CliError):
    """Raised when the name server does not know the cluster."""

    def __init__(self, cluster_name: str, known: list[str]) -> None:
        names = ", ".join(sorted(known)) or "none"
        super().__init__(f"this name server does not know cluster {cluster_name!r}", f"it knows: {names}")


@attrs.frozen(kw_only=True)
class AdminContext(AdminCalls):
    """The context of a subcommand: connections, output, and time."""

    echo: Callable[[str], None]
    warn: Callable[[str], None]
    as_json: bool = False
    """With --json, `say` and `row` print one JSON object per line, and text without a value is left out."""

    # output

    def say(self, text: str | None, /, **value: Json) -> None:
        """Print a line of text, or the value with --json; print nothing for None or without a value."""
        if not self.as_json and text is not None:
            self.echo(text)
        elif self.as_json and value:
            self.echo(json_line(value).rstrip("\n"))

    def say_value(self, text: str, value: Mapping[str, Json]) -> None:
        """Do the same for a value whose members have any names."""
        self.echo(json_line(value).rstrip("\n") if self.as_json else text)

    def row(self, table: TextTable, *values: Json) -> None:
        """Print a row of a table."""
        self.say_value(table.line(values), table.value(values))

    # lists in the order in which Apache's tool prints them

    async def topic_list(self) -> list[str]:
        return hash_order(await super().topic_list())

    async def consumer_groups(self, address: str, topic: str) -> list[str]:
        return hash_order(await super().consumer_groups(address, topic))


def broker_names(cluster: ClusterInfo, cluster_name: str) -> list[str]:
    """Return the brokers of a cluster in Apache's order. Raises ClusterUnknown."""
    table = cluster.cluster_addr_table or {}
    if cluster_name not in table:
        raise ClusterUnknown(cluster_name, list(table))
    return hash_order(table[cluster_name])


def master_addresses(cluster: ClusterInfo, cluster_name: str) -> list[str]:
    """Return the addresses of a cluster's masters in Apache's order. Raises ClusterUnknown."""
    brokers = cluster.broker_addr_table or {}
    held = [brokers[name].broker_addrs for name in broker_names(cluster, cluster_name) if name in brokers]
    return hash_order(addresses[MASTER_ID] for addresses in held if addresses and MASTER_ID in addresses)


def all_addresses(cluster: ClusterInfo, cluster_name: str) -> list[str]:
    """Return the addresses of a cluster's brokers, including slaves. Raises ClusterUnknown."""
    brokers = cluster.broker_addr_table or {}
    held = [brokers[name].broker_addrs or {} for name in broker_names(cluster, cluster_name) if name in brokers]
    return hash_order(address for addresses in held for address in addresses.values())


async def chosen_masters(admin: AdminContext, line: CommandLine) -> list[str]:
    """Return the broker of -b, or the masters of the cluster of -c. Raises UsageError if neither is given."""
    if "b" in line:
        return [line.value("b")]
    return master_addresses(await admin.cluster_info(), cluster_of_line(line))


async def chosen_brokers(admin: AdminContext, line: CommandLine) -> list[str]:
    """Return the broker of -b, or all brokers of the cluster of -c. Raises UsageError if neither is given."""
    if "b" in line:
        return [line.value("b")]
    return all_addresses(await admin.cluster_info(), cluster_of_line(line))


def cluster_of_line(line: CommandLine) -> str:
    """Return the value of -c. Raises UsageError without it."""
    if "c" not in line:
        raise UsageError("Missing required option: [-b a broker's address, -c a cluster's name]")
    return line.value("c")
