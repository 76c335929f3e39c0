"""Apache's gRPC clients of five versions and languages at each kind of proxy: every scenario that a client has calls for.

At one place all clients run side by side, each in one process with all of its scenarios, which mostly wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.grpc_peers.proxies import PLACES, servers_at
from interop.peers.grpc_peers.scenarios import SCENARIOS, Stage
from interop.peers.line_peer import LinePeer
from interop.peers.servers import running
from twisted_mq.blocking import Admin

pytestmark = pytest.mark.peer

SIDE_BY_SIDE = 24
"""Scenarios at a time: two cores are busy with these, and clients do not time out."""
CASES = [(client, scenario) for scenario in SCENARIOS for client, one in CLIENTS.items() if scenario not in one.lacks]

FORGOTTEN = {("Apache's local", "acknowledged_after_a_change")}
"""Places and scenarios where messages come again although they are acknowledged, with 5.3.3: its proxy in local mode, with each
client, after a change of their invisible time.
"""

Outcomes = dict[tuple[str, str], Future[None]]


def play(client: str, scenario: str, peer: LinePeer, admin: Admin) -> None:
    stage = Stage(CLIENTS[client], peer, admin)
    try:
        SCENARIOS[scenario](stage)
    finally:
        stage.stop()


@pytest.fixture(scope="module", params=list(PLACES))
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """Run each chosen case at a place, and return the outcomes."""
    directory = tmp_path_factory.mktemp("grpc")
    wanted = chosen(request)
    with ExitStack() as stack:
        servers = stack.enter_context(running(servers_at(request.param, directory / "servers")))
        admin = stack.enter_context(Admin(servers.name_server))
        peers = {name: CLIENTS[name].start(servers.address, directory) for name in {client for client, _ in wanted}}
        for peer in peers.values():
            stack.callback(peer.close)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            yield {case: pool.submit(play, *case, peers[case[0]], admin) for case in wanted}


def chosen(request: pytest.FixtureRequest) -> list[tuple[str, str]]:
    """The cases that this run of pytest has of the place, those that wait longest first."""
    here = [item.callspec.params for item in request.session.items if item.module is request.module]
    return list(dict.fromkeys((one["client"], one["scenario"]) for one in here if one["outcomes"] == request.param))


@pytest.mark.parametrize(("client", "scenario"), CASES)
def test_client_gets_done_what_its_scenario_asks(
    request: pytest.FixtureRequest, outcomes: Outcomes, client: str, scenario: str
) -> None:
    if (request.node.callspec.params["outcomes"], scenario) in FORGOTTEN:
        with pytest.raises(AssertionError, match=r"body.* == \[\]"):
            outcomes[client, scenario].result()
    else:
        outcomes[client, scenario].result()
