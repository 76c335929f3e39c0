"""Implements `mq console`: browser pages that show and change a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.server_options import reaches_servers
from twisted_mq.extras import require

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.cli.servers import Servers
    from twisted_mq.client.core.client_options import ClientOptions
    from twisted_mq.console.service import ConsoleService
    from twisted_mq.console.settings import ConsoleSettings, NamedCluster, OwnCertificate
    from twisted_mq.coordination.settings import CoordinatorSettings

DEFAULT_PORT = 8090


@click.command(short_help="Serve the web console for a cluster.")
@click.option(
    "--console-port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 selects a free port.",
)
@click.option("--bind", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--console-tls-cert",
    envvar="MQ_CONSOLE_TLS_CERT",
    help="Serve https with this certificate and its chain (PEM file).",
)
@click.option("--console-tls-key", envvar="MQ_CONSOLE_TLS_KEY", help="Private key of the certificate (PEM file).")
@click.option(
    "--console-tls-key-password",
    envvar="MQ_CONSOLE_TLS_KEY_PASSWORD",
    help="Password of the private key; the variable MQ_CONSOLE_TLS_KEY_PASSWORD is safer.",
)
@click.option("--accounts", is_flag=True, help="Log in with an access key of the cluster instead of a token.")
@click.option(
    "--prometheus",
    metavar="URL",
    envvar="MQ_PROMETHEUS",
    help="Read the past of charts from a Prometheus server that scrapes the brokers, as http://HOST:9090.",
)
@click.option("--read-only", is_flag=True, help="Allow no changes.")
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME=ADDRESSES",
    help="Show this cluster, in place of --namesrv; once for each: each page then has a switch.",
)
@click.option(
    "--coordinator",
    envvar="MQ_ORDER_COORDINATOR",
    help="Show ordered topics too; address of ZooKeeper, HOST:PORT,HOST:PORT/chroot.",
)
@click.option(
    "--coordinator-auth",
    envvar="MQ_ORDER_AUTH",
    default="",
    help="ZooKeeper digest credentials, USER:PASSWORD; the variable MQ_ORDER_AUTH is safer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only one line of JSON for each token.")
@reaches_servers
def console(
    console_port: int,
    bind: str,
    console_tls_cert: str | None,
    console_tls_key: str | None,
    console_tls_key_password: str | None,
    accounts: bool,
    prometheus: str | None,
    read_only: bool,
    clusters: tuple[str, ...],
    coordinator: str | None,
    coordinator_auth: str,
    as_json: bool,
    servers: Servers,
) -> None:
    """Serve the web console until Ctrl-C. It prints an address with a token for one login, and a new one after each login.

    With --accounts users log in with an access key and a secret key of the cluster, which sign their requests. An account of
    the console's own (--access-key, --secret-key) then keeps the values that charts show, and does nothing else.

    \b
    Examples:
      mq console
      mq console --namesrv mq.example.org:9876 --accounts
      mq console --cluster shop=mq1.example.org:9876 --cluster bank="mq2.example.org:9876;mq3.example.org:9876"
      mq console --bind 10.0.0.1 --accounts --console-tls-cert console.pem --console-tls-key console.key
    """
    require("mq console", "console")
    from twisted_mq.cli.run import Interrupted, run_under_reactor
    from twisted_mq.config.startup import warn_if_open
    from twisted_mq.console.settings import ConsoleSettings
    from twisted_mq.routing.name_servers import parse_addresses

    warn_if_open(bind, "--bind")
    named = [_cluster(text) for text in clusters]
    if len({one.name for one in named}) < len(named):
        raise click.UsageError("--cluster: each needs a name of its own.")
    settings = ConsoleSettings(
        named[0].name_servers if named else parse_addresses(servers.addresses, "--namesrv"),
        name=named[0].name if named else "",
        others=tuple(named[1:]),
        bind=bind,
        port=console_port,
        certificate=_certificate(console_tls_cert, console_tls_key, console_tls_key_password),
        accounts=accounts,
        read_only=read_only,
        own_account=servers.client_options().credentials if accounts else None,
        prometheus=None if prometheus is None else _checked_url(prometheus),
        coordinator=None if coordinator is None else _coordinator(coordinator, coordinator_auth, servers),
        client_options=_without_account(servers.client_options()) if accounts else servers.client_options(),
    )
    try:
        run_under_reactor(lambda reactor: _serve(reactor, settings, as_json))
    except Interrupted:
        if not as_json:
            click.echo("stopped")


def _cluster(text: str) -> NamedCluster:
    """Return the cluster in NAME=ADDRESSES. Raises UsageError, ClientOptionIllegal."""
    from twisted_mq.console.settings import NamedCluster
    from twisted_mq.routing.name_servers import parse_addresses

    name, _, addresses = text.partition("=")
    if not name.strip() or not addresses.strip():
        raise click.UsageError(f"--cluster: NAME=HOST:PORT is needed, got {text!r}.")
    return NamedCluster(name.strip(), parse_addresses(addresses, "--cluster"))


def _checked_url(url: str) -> str:
    """Return the address without a slash at its end. Raises UsageError."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.query or parts.fragment:
        raise click.UsageError(f"--prometheus: http://HOST:PORT is needed, got {url!r}.")
    return url.rstrip("/")


def _certificate(path: str | None, key_path: str | None, key_password: str | None) -> OwnCertificate | None:
    """Return the certificate. Raises UsageError if a part is missing."""
    from twisted_mq.console.settings import TLS_CERT, TLS_KEY, OwnCertificate

    if path and key_path:
        return OwnCertificate(path, key_path, key_password)
    if path or key_path or key_password:
        raise click.UsageError(f"{TLS_CERT} and {TLS_KEY} must be given together.")
    return None


def _coordinator(address: str, auth: str, servers: Servers) -> CoordinatorSettings:
    """Return the coordinator's settings. Raises CliError."""
    from twisted_mq.cli.ordered.session import SessionSettings, settings_of

    return settings_of(address, SessionSettings(servers, address, auth))


def _without_account(options: ClientOptions) -> ClientOptions:
    """Return options without an account, so that one user's account does not sign other users' requests."""
    import attrs

    return attrs.evolve(options, access_key=None, secret_key=None)


async def _serve(reactor: IReactorTime, settings: ConsoleSettings, as_json: bool) -> None:
    """Serve until this coroutine is cancelled."""
    from twisted.internet.defer import Deferred

    service = started(reactor, settings, as_json)
    try:
        service.invite()
        if not as_json:
            click.echo("Ctrl-C stops it")
        await Deferred()
    finally:
        await service.stopService()


def started(reactor: IReactorTime, settings: ConsoleSettings, as_json: bool) -> ConsoleService:
    """Return a console that listens, and prints the address to log in when `invite` is called. Raises PortError."""
    from twisted_mq.console.service import ConsoleService

    def announce(address: str) -> None:
        click.echo(json.dumps({"console": address}) if as_json else f"console      {address}")

    service = ConsoleService(settings, reactor, announce)
    service.startService()
    return service
