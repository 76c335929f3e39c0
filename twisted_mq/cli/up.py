"""Implements `mq up`: a name server and a broker in one process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import click

from twisted_mq.extras import MissingExtra, require

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.cli.up_brokers import BrokersOfUp
    from twisted_mq.console.service import ConsoleService
    from twisted_mq.testing import EmbeddedCluster, OrderedCluster

    Servers: TypeAlias = EmbeddedCluster | OrderedCluster | BrokersOfUp

PORT = click.IntRange(0, 65535)
NAMESRV_PORT, BROKER_PORT, GRPC_PORT = 9876, 10911, 8081
LOOPBACK = "127.0.0.1"


def default_store() -> str:
    """Return the default directory of the store: in the user's data folder (XDG_DATA_HOME)."""
    data_home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data_home, "mq", "store")


@click.command(short_help="Run a name server and a broker in this process.")
@click.option(
    "--namesrv-port",
    default=None,
    type=PORT,
    help=f"Port of the name server; 0 selects a free port.  [default: {NAMESRV_PORT}; 0 with --port 0]",
)
@click.option(
    "--port", default=BROKER_PORT, type=PORT, show_default=True, help="Port of the broker; 0 selects a free port."
)
@click.option(
    "--grpc-port",
    default=None,
    type=click.IntRange(-1, 65535),
    help=f"Port for gRPC clients of 5.x; 0 selects a free port, -1 disables it.  [default: {GRPC_PORT}; 0 with --port 0]",
)
@click.option("--bind", default=LOOPBACK, show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--advertise", default=None, help="Address for clients (brokerIP1); by default the listen address.")
@click.option("--store", default=None, help="Directory of the store.  [default: ~/.local/share/mq/store]")
@click.option("--temporary", is_flag=True, help="Use a temporary store, and remove it at the end.")
@click.option(
    "--ordered", is_flag=True, help="Run two broker groups for strictly ordered topics, with temporary stores."
)
@click.option(
    "--brokers",
    default=None,
    type=click.IntRange(2, 64),
    help="Run this many brokers, each in a process of its own; their ports are 10 apart.",
)
@click.option(
    "--console-port", default=None, type=PORT, help="Also serve the web console on this port; 0 selects a free port."
)
@click.option("--json", "as_json", is_flag=True, help="Print only one line of JSON, with the addresses.")
@click.option("--verbose", is_flag=True, help="Print the servers' log on standard error.")
def up(
    namesrv_port: int | None,
    port: int,
    grpc_port: int | None,
    bind: str,
    advertise: str | None,
    store: str | None,
    temporary: bool,
    ordered: bool,
    brokers: int | None,
    console_port: int | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Run a name server and a broker in this process until Ctrl-C.

    The first send creates a topic. The store is kept between runs. With --console-port the web console is
    served at 127.0.0.1. The printed address has a token for one login.

    With --brokers 2 the brokers broker-0 and broker-1 run in processes of their own, on ports 10911 and 10921. One that
    ends is started again.

    With --ordered two masters and their slaves run on free ports of 127.0.0.1, and this process replaces
    ZooKeeper.

    \b
    Example:
      mq up --temporary
      mq send Orders "hello"             in another terminal
      mq up --temporary --port 0 --json  for a test, which reads the line
    """
    if temporary and store:
        raise click.UsageError("--temporary and --store cannot be combined.")
    if ordered and (store or advertise or grpc_port is not None or port != BROKER_PORT or bind != LOOPBACK or brokers):
        raise click.UsageError(
            "--ordered can only be combined with --namesrv-port, --console-port, --temporary, --json and --verbose."
        )
    from twisted_mq.cli.errors import CliError
    from twisted_mq.cli.logs import log_to_stderr
    from twisted_mq.cli.run import Interrupted, run_under_reactor
    from twisted_mq.config.command_line import OWN_FILES
    from twisted_mq.config.startup import warn_if_open
    from twisted_mq.remoting.listen import PortError
    from twisted_mq.storage.errors import StoreError
    from twisted_mq.testing import EmbeddedCluster

    require("mq up", "broker")
    from twisted_mq.broker.processes.supervisor import BrokerEnded
    from twisted_mq.cli.up_brokers import BrokersOfUp

    log_to_stderr(verbose)
    if grpc_port is None:
        grpc_port = -1 if ordered else _grpc_port(bind, port)
    elif grpc_port >= 0:
        require("mq up --grpc-port", "proxy")
    first_port = (NAMESRV_PORT if port else 0) if namesrv_port is None else namesrv_port
    warn_if_open(bind, "--bind")
    os.umask(OWN_FILES)

    def made(reactor: IReactorTime) -> tuple[Servers, Callable[[], str]]:
        if ordered:
            from twisted_mq.testing import OrderedCluster

            groups = OrderedCluster(reactor, namesrv_port=first_port)
            return groups, lambda: json.dumps(_ordered_facts(groups)) if as_json else _ordered_welcome(groups)
        if brokers:
            several = BrokersOfUp(
                reactor,
                brokers,
                None if temporary else os.path.abspath(store or default_store()),
                address=bind,
                namesrv_port=first_port,
                broker_port=port,
                grpc_port=grpc_port,
                advertise=advertise,
            )
            return several, lambda: json.dumps(several.facts()) if as_json else several.welcome(_namesrv_flag(several))
        cluster = EmbeddedCluster(
            reactor,
            None if temporary else os.path.abspath(store or default_store()),
            address=bind,
            namesrv_port=first_port,
            broker_port=port,
            broker_options={"grpc_server_port": grpc_port, **({"broker_ip1": advertise} if advertise else {})},
        )
        return cluster, lambda: json.dumps(_facts(cluster)) if as_json else _welcome(cluster, temporary)

    if console_port is not None:
        require("mq up --console-port", "console")
    try:
        run_under_reactor(lambda reactor: _serve(reactor, *made(reactor), console_port, as_json))
    except Interrupted:
        if not as_json:
            click.echo("stopped")
    except PortError as error:
        flags = {first_port: "--namesrv-port", console_port: "--console-port", grpc_port: "--grpc-port"}
        flag = flags.get(error.port, "--port")
        raise CliError(in_flags(str(error), flag)) from error
    except (StoreError, BrokerEnded) as error:
        raise CliError(in_flags(str(error), "--port")) from error


def in_flags(text: str, port_flag: str) -> str:
    """Return the same advice with this command's flags instead of a file's keys; the slaves' port follows the broker's."""
    flags = {
        "haListenPort": "--port",
        "grpcServerPort": "--grpc-port",
        "listenPort": port_flag,
        "bindAddress": "--bind",
        "storePathRootDir": "--store",
    }
    for key, flag in flags.items():
        text = text.replace(key, flag)
    return text


def _grpc_port(host: str, port: int) -> int:
    """Return the default port for gRPC clients; -1 if they cannot be served, with the reason on standard error."""
    from twisted_mq.remoting.listen import PortError, bind

    try:
        require("the gRPC port", "proxy")
        if not port:
            return 0
        with bind(host, GRPC_PORT, "--grpc-port"):
            return GRPC_PORT
    except (MissingExtra, PortError) as error:
        click.echo(f"gRPC clients are not served: {error}", err=True)
        return -1


async def _serve(
    reactor: IReactorTime,
    cluster: Servers,
    welcome: Callable[[], str],
    console_port: int | None,
    as_json: bool,
) -> None:
    """Run the cluster, and the console if it has a port, until this coroutine is cancelled."""
    from twisted.internet.defer import Deferred

    await cluster.start()
    console: ConsoleService | None = None
    try:
        if console_port is not None:
            console = _started_console(reactor, cluster, console_port, as_json)
        click.echo(welcome())
        if console is not None:
            console.invite()
        await Deferred()
    finally:
        if console is not None:
            await console.stopService()
        await cluster.stop()


def _started_console(reactor: IReactorTime, cluster: Servers, port: int, as_json: bool) -> ConsoleService:
    import attrs

    from twisted_mq.cli.console import started
    from twisted_mq.console.settings import ConsoleSettings
    from twisted_mq.coordination.address import parse_address
    from twisted_mq.coordination.settings import CoordinatorSettings
    from twisted_mq.testing import OrderedCluster

    settings = ConsoleSettings((cluster.name_server,), port=port)
    if isinstance(cluster, OrderedCluster):
        coordinator = CoordinatorSettings(parse_address(cluster.coordinator_address))
        settings = attrs.evolve(settings, coordinator=coordinator)
    return started(reactor, settings, as_json)


def _facts(cluster: EmbeddedCluster) -> dict[str, str]:
    """Return the addresses, by the names that the fixture mq_server has for them."""
    return {
        "namesrv": cluster.name_server,
        "broker": cluster.broker_address,
        "grpc": cluster.grpc_address,
        "store_path": cluster.store_path,
    }


def _ordered_facts(cluster: OrderedCluster) -> dict[str, object]:
    """Return the same for broker groups: the addresses of each master and its slave."""
    brokers = {group: [_broker_address(cluster, group, one) for one in (0, 1)] for group in cluster.groups}
    return {
        "namesrv": cluster.name_server,
        "coordinator": cluster.coordinator_address,
        "brokers": brokers,
        "store_path": cluster.store_path,
    }


def _welcome(cluster: EmbeddedCluster, temporary: bool) -> str:
    """Return the text with the addresses, and what to do with them."""
    kept = " (removed at the end)" if temporary else ""
    flag = _namesrv_flag(cluster)
    return "\n".join(
        [
            f"name server  {cluster.name_server}",
            f"broker       {cluster.broker_address}, announced as {cluster.broker.controller.address}",
            f"gRPC         {cluster.grpc_address or 'not served'}, for clients of 5.x",
            f"store        {cluster.store_path}{kept}",
            f'try          mq send Orders "hello"{flag}',
            "Ctrl-C stops both",
        ]
    )


def _ordered_welcome(cluster: OrderedCluster) -> str:
    """Return the same for broker groups."""
    flag = _namesrv_flag(cluster)
    groups = (
        f"{group:<13}{', '.join(_broker_address(cluster, group, one) for one in (0, 1))} (master, slave)"
        for group in cluster.groups
    )
    return "\n".join(
        [
            f"name server  {cluster.name_server}",
            f"coordinator  {cluster.coordinator_address}, for clients of ZooKeeper",
            *groups,
            f"store        {cluster.store_path} (removed at the end)",
            f"try          mq order create Orders --queues 2 --groups {','.join(cluster.groups)}{flag}",
            "Ctrl-C stops all",
        ]
    )


def _broker_address(cluster: OrderedCluster, group: str, broker_id: int) -> str:
    return f"{LOOPBACK}:{cluster.brokers[group, broker_id].port}"


def _namesrv_flag(cluster: Servers) -> str:
    return "" if cluster.namesrv.port == NAMESRV_PORT else f" --namesrv {cluster.name_server}"
