"""Provides the session of commands: the cluster's brokers, and a session with the coordinator of its ordered topics."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import attrs

from twisted_mq.admin import ordered_topics
from twisted_mq.admin.calls import AdminCalls, select_address
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.errors import CliError, report
from twisted_mq.cli.servers import Servers
from twisted_mq.coordination.address import BadAddress, parse_address
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.remoting.errors import RemotingError

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime

COORDINATOR_KEY = "orderCoordinator"


@attrs.frozen
class SessionSettings:
    """The settings to reach both. Without `coordinator`, the brokers are asked for its address."""

    servers: Servers
    coordinator: str | None = None
    auth: str = attrs.field(default="", repr=False)
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""


@attrs.frozen
class OrderCommandSession(ordered_topics.OrderSession):
    """The session of a command, which may print warnings."""

    admin: AdminContext
    coordinator: ICoordinator


Work = Callable[[OrderCommandSession], Coroutine["Deferred[Any]", Any, None]]


def run_session(connection: SessionSettings, work: Work) -> None:
    """Run one command. Raises CliError, and the errors of requests."""
    from twisted_mq.cli.run import run_under_reactor

    run_under_reactor(lambda reactor: _run(reactor, connection, work))


async def _run(reactor: IReactorTime, connection: SessionSettings, work: Work) -> None:
    from twisted_mq.cli.admin.connected import connected
    from twisted_mq.coordination.connect import coordinator_for

    with connected(reactor, connection.servers, print, lambda text: report("mq order", text)) as admin:
        address = connection.coordinator or await coordinator_address(admin)
        await _in_session(coordinator_for(settings_of(address, connection), reactor), address, admin, work)


async def _in_session(coordinator: ICoordinator, address: str, admin: AdminContext, work: Work) -> None:
    try:
        await coordinator.start()
        try:
            await work(OrderCommandSession(admin, coordinator))
        finally:
            await coordinator.stop()
    except CoordinationError as error:
        raise CliError(f"coordinator {address}: {error}") from error


def settings_of(address: str, connection: SessionSettings) -> CoordinatorSettings:
    """Return the settings to reach the coordinator. Raises CliError."""
    try:
        parsed = parse_address(address)
        if parsed.in_memory:
            raise CliError(
                "the brokers keep ordered topics in the memory of their own process",
                "`mq up --ordered` prints an address for --coordinator; a cluster of several processes needs ZooKeeper",
            )
        return CoordinatorSettings(
            parsed,
            auth=connection.auth,
            ca_file=connection.ca_file,
            certificate_file=connection.certificate_file,
            key_file=connection.key_file,
        )
    except BadAddress as error:
        raise CliError(str(error)) from error
    except ValueError as error:
        raise CliError(str(error), "check --auth, --ca-file, --cert-file and --key-file") from error


async def coordinator_address(admin: AdminCalls) -> str:
    """Return the first address that a broker of the cluster reports. Raises CliError."""
    from twisted_mq.client.core.broker_calls import BrokerCalls

    calls = BrokerCalls(admin.client)
    for _, broker in sorted((await admin.cluster_info()).broker_addr_table.items()):
        address = select_address(broker.broker_addrs)
        try:
            found = (await calls.broker_config(address)).get(COORDINATOR_KEY) if address else None
        except (BrokerError, RemotingError):
            continue
        if found:
            return found
    raise CliError(
        "no broker reports the address of the coordinator",
        f"set {COORDINATOR_KEY} in the brokers' files, or use --coordinator HOST:PORT/chroot",
    )
