"""`mq up`: a name server and a broker in one process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.testing import EmbeddedCluster, OrderedCluster

PORT = click.IntRange(0, 65535)
BROKER_PORT = 10911
LOOPBACK = "127.0.0.1"


def default_store() -> str:
    """Where the store lies unless another place is named: the user's data folder (XDG_DATA_HOME)."""
    data_home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data_home, "mq", "store")


@click.command(short_help="Run a name server and a broker in this process.")
@click.option(
    "--namesrv-port", default=9876, type=PORT, show_default=True, help="Port of the name server; 0 takes a free one."
)
@click.option(
    "--port", default=BROKER_PORT, type=PORT, show_default=True, help="Port of the broker; 0 takes a free one."
)
@click.option("--bind", default=LOOPBACK, show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--advertise", default=None, help="Address told to clients (brokerIP1); by default the bound one.")
@click.option("--store", default=None, help="Directory of the store.  [default: ~/.local/share/mq/store]")
@click.option("--temporary", is_flag=True, help="Keep the store in a temporary folder and remove it at the end.")
@click.option(
    "--ordered", is_flag=True, help="Two broker groups for strictly ordered topics instead; their stores are temporary."
)
@click.option("--verbose", is_flag=True, help="Print the servers' log on standard error.")
def up(
    namesrv_port: int,
    port: int,
    bind: str,
    advertise: str | None,
    store: str | None,
    temporary: bool,
    ordered: bool,
    verbose: bool,
) -> None:
    """Run a name server and a broker in this process until Ctrl-C.

    Topics are created by the first send. The store is kept between runs. There is no web console yet: look at the
    cluster with `mq admin`.

    With --ordered two masters and their slaves run, all on free ports of 127.0.0.1, and what ZooKeeper would keep is in
    this process.

    \b
    Example:
      mq up --temporary
      mq send Orders "hello"             in another terminal
    """
    if temporary and store:
        raise click.UsageError("--temporary and --store exclude each other.")
    if ordered and (store or advertise or port != BROKER_PORT or bind != LOOPBACK):
        raise click.UsageError("--ordered goes with --namesrv-port, --temporary and --verbose alone.")
    from twisted_mq.cli.errors import CliError
    from twisted_mq.cli.logs import log_to_stderr
    from twisted_mq.cli.run import Interrupted, run_under_reactor
    from twisted_mq.config.command_line import OWN_FILES
    from twisted_mq.config.startup import warn_if_open
    from twisted_mq.remoting.listen import PortError
    from twisted_mq.storage.errors import StoreError
    from twisted_mq.testing import EmbeddedCluster

    log_to_stderr(verbose)
    warn_if_open(bind, "--bind")
    os.umask(OWN_FILES)

    def made(reactor: IReactorTime) -> tuple[EmbeddedCluster | OrderedCluster, Callable[[], str]]:
        if ordered:
            from twisted_mq.testing import OrderedCluster

            groups = OrderedCluster(reactor, namesrv_port=namesrv_port)
            return groups, lambda: _ordered_welcome(groups)
        cluster = EmbeddedCluster(
            reactor,
            None if temporary else os.path.abspath(store or default_store()),
            address=bind,
            namesrv_port=namesrv_port,
            broker_port=port,
            broker_options={"broker_ip1": advertise} if advertise else {},
        )
        return cluster, lambda: _welcome(cluster, temporary)

    try:
        run_under_reactor(lambda reactor: _serve(*made(reactor)))
    except Interrupted:
        click.echo("stopped")
    except PortError as error:
        flag = "--namesrv-port" if error.port == namesrv_port else "--port"
        raise CliError(in_flags(str(error), flag)) from error
    except StoreError as error:
        raise CliError(in_flags(str(error), "--port")) from error


def in_flags(text: str, port_flag: str) -> str:
    """The same advice with this command's flags in place of a file's keys; the slaves' port follows the broker's."""
    flags = {"haListenPort": "--port", "listenPort": port_flag, "bindAddress": "--bind", "storePathRootDir": "--store"}
    for key, flag in flags.items():
        text = text.replace(key, flag)
    return text


async def _serve(cluster: EmbeddedCluster | OrderedCluster, welcome: Callable[[], str]) -> None:
    """Run the cluster until this coroutine is cancelled."""
    from twisted.internet.defer import Deferred

    await cluster.start()
    try:
        click.echo(welcome())
        await Deferred()
    finally:
        await cluster.stop()


def _welcome(cluster: EmbeddedCluster, temporary: bool) -> str:
    """What runs where, and what to do with it."""
    kept = " (removed at the end)" if temporary else ""
    flag = _namesrv_flag(cluster)
    return "\n".join(
        [
            f"name server  {cluster.name_server}",
            f"broker       {cluster.broker_address}, announced as {cluster.broker.controller.address}",
            f"store        {cluster.store_path}{kept}",
            f'try          mq send Orders "hello"{flag}',
            "Ctrl-C stops both",
        ]
    )


def _ordered_welcome(cluster: OrderedCluster) -> str:
    """The same for broker groups."""
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


def _namesrv_flag(cluster: EmbeddedCluster | OrderedCluster) -> str:
    return "" if cluster.namesrv.port == 9876 else f" --namesrv {cluster.name_server}"
