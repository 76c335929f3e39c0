"""`mq doctor`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import attrs
import click

from twisted_mq.cli.asking import ask
from twisted_mq.cli.output import json_line, print_table
from twisted_mq.cli.server_options import reaches_servers

if TYPE_CHECKING:
    from twisted_mq.cli.admin.calls import AdminContext
    from twisted_mq.cli.doctor.checks import CheckOutcome
    from twisted_mq.cli.servers import Servers


@click.command(short_help="Find problems of a cluster, a store or a configuration.")
@click.option(
    "--store", type=click.Path(exists=True, file_okay=False), help="Also check the files of a store on this machine."
)
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="Also check a broker.conf and its store.")
@click.option("--local", is_flag=True, help="Do not ask servers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per check.")
@reaches_servers
def doctor(store: str | None, config: str | None, local: bool, as_json: bool, servers: Servers) -> None:
    """Check name servers, brokers at their registered addresses, clocks, disks, versions, routes and security.

    Works with this project's servers and Apache's. Each check is ok, warning, problem or unknown, and says what to do.

    \b
    Examples:
      mq doctor
      mq doctor --local --config broker.conf
    """
    from twisted_mq.cli.doctor.checks import COLUMNS, Result
    from twisted_mq.cli.doctor.machine import check_config, check_machine, check_store

    found: list[CheckOutcome] = [] if local else ask(servers, _cluster)
    if local or store or config:
        found += check_machine()
    found += check_config(config) if config else ()
    found += check_store(store) if store else ()
    if as_json:
        for check in found:
            sys.stdout.write(json_line(attrs.asdict(check)))
    else:
        print_table(COLUMNS, map(attrs.astuple, found))
    if any(check.result is Result.PROBLEM for check in found):
        raise SystemExit(1)


async def _cluster(admin: AdminContext) -> list[CheckOutcome]:
    from twisted_mq.cli.doctor.cluster import check_cluster

    return [check async for check in check_cluster(admin)]
