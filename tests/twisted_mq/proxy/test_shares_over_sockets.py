"""Shares of the gRPC port over real sockets: connections by address, and waiting receives by account.

A connection may carry the calls of many accounts, so it is no account's.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from interop.peers.process import wait_until
from tests.support.access import SECRET
from tests.support.grpc_client import GrpcClient, code
from tests.twisted_mq.proxy.test_access_and_tls import signed
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.protocol.bodies import UserInfo
from twisted_mq.proxy.grpc.server import GrpcServerFactory
from twisted_mq.remoting.shares import share_of_account
from twisted_mq.testing import EmbeddedServer

PLACES = 8
NAMES = ("ada", "bob")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@contextlib.contextmanager
def full_after(server: EmbeddedServer, places: int) -> Iterator[Callable[[], dict[str, int]]]:
    """Give the gRPC port that many places; yields what tells the number of connections of each share."""
    port = server._cluster.broker._ports.grpc  # type: ignore[union-attr]
    assert port is not None
    factory: GrpcServerFactory = port.factory
    factory.connections._most = places

    def counts() -> dict[str, int]:
        return server._thread.call(
            lambda: {share: count for share, count in factory.connections._shares._counts.items() if count}
        )

    yield counts


def is_closed(client: socket.socket) -> bool:
    """Return whether the server has closed a connection; what it sent before is read."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def test_strangers_of_one_address_make_room_for_another_address() -> None:
    with contextlib.ExitStack() as opened, EmbeddedServer(store="memory") as server:
        topic, address = server.new_topic("any"), server.grpc
        counts = opened.enter_context(full_after(server, PLACES))
        host, _, port = address.partition(":")
        strangers = []
        for number in range(PLACES):
            one = socket.create_connection((host, int(port)), 5.0, ("127.0.0.2", 0))
            strangers.append(opened.enter_context(one))
            one.sendall(PREFACE)
            wait_until(lambda number=number: counts() == {"127.0.0.2": number + 1}, lambda: str(counts()))
        with GrpcClient(address) as client:
            assert code(client.send(topic, b"x")) == "OK"
            assert counts() == {"127.0.0.1": 1, "127.0.0.2": PLACES - 1}
        wait_until(lambda: is_closed(strangers[0]), "the oldest has given way")
        assert [is_closed(one) for one in strangers[1:]] == [False] * (PLACES - 1)


class Receivers:
    """Clients at one address, as behind a load balancer, whose receives wait at a broker with PLACES places for them."""

    def __init__(self, server: EmbeddedServer, opened: contextlib.ExitStack) -> None:
        self.server = server
        self.topic = server.new_topic("any")
        self.answers: dict[str, list[str]] = {name: [] for name in NAMES}
        """The statuses of the receives that have ended."""
        self.polling = server._cluster.broker.controller.polling  # type: ignore[union-attr]
        self._opened = opened

    def connect(self, name: str) -> GrpcClient:
        client = self._opened.enter_context(GrpcClient(self.server.grpc, **signed(name, SECRET)))
        client.settle_consumer(self.topic, f"group-of-{name}")
        return client

    def receive(self, name: str, client: GrpcClient, count: int = 1) -> None:
        for _ in range(count):
            call = client.receiving(
                group={"name": f"group-of-{name}"},
                message_queue={"topic": {"name": self.topic}},
                batch_size=1,
                invisible_duration={"seconds": 30},
                long_polling_timeout={"seconds": 18},
                filter_expression={"expression": "*"},
            )
            threading.Thread(target=self._read, args=(name, call), daemon=True).start()

    def _read(self, name: str, call: Any) -> None:
        with contextlib.suppress(grpc.RpcError):  # the test is over, and its channels are closed
            self.answers[name].append(code(next(call)))

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting receives of each account."""
        counts = self.server._thread.call(lambda: dict(self.polling._shares[WaitingKind.POP]._counts))
        return {name: counts.get(share_of_account(name), 0) for name in NAMES}

    def fill(self) -> GrpcClient:
        """Ada has five of eight places, by two clients; Bob has the others."""
        for count in (2, 3):
            self.receive("ada", self.connect("ada"), count)
        wait_until(lambda: self.waiting() == {"ada": 5, "bob": 0}, lambda: str(self.waiting()))
        bob = self.connect("bob")
        self.receive("bob", bob, 3)
        wait_until(lambda: self.waiting() == {"ada": 5, "bob": 3}, lambda: str(self.waiting()))
        return bob


@pytest.fixture
def receivers() -> Iterator[Receivers]:
    options = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps({"username": "root", "password": SECRET}),
        "inner_client_authentication_credentials": json.dumps({"accessKey": "inner", "secretKey": "of-the-servers"}),
        "max_pop_polling_size": PLACES,
    }
    with EmbeddedServer(store="memory", broker_options=options) as server, contextlib.ExitStack() as opened:
        accounts = server._cluster.broker._parts.access.accounts  # type: ignore[union-attr]
        for name in NAMES:
            server._thread.call(lambda name=name: accounts.create_user(UserInfo(name, SECRET, "Super")))
        yield Receivers(server, opened)


def test_the_account_with_the_most_waiting_receives_gives_way(receivers: Receivers) -> None:
    bob = receivers.fill()
    receivers.receive("bob", bob)
    wait_until(lambda: receivers.waiting() == {"ada": 4, "bob": 4}, lambda: str(receivers.waiting()))
    wait_until(lambda: receivers.answers["ada"] == ["MESSAGE_NOT_FOUND"], lambda: str(receivers.answers["ada"]))
    assert receivers.answers["bob"] == []
    receivers.receive("bob", bob)
    wait_until(lambda: len(receivers.answers["bob"]) == 1, "none is larger than Bob's share")
    assert receivers.waiting() == {"ada": 4, "bob": 4}


def test_an_account_that_was_served_before_keeps_a_reserve(receivers: Receivers) -> None:
    first = receivers.connect("ada")
    receivers.receive("ada", first)
    wait_until(lambda: receivers.waiting()["ada"] == 1, lambda: str(receivers.waiting()))
    since = receivers.polling._served._since
    receivers.server._thread.call(lambda: since.update({share_of_account("ada"): -7200.0}))
    receivers.receive("ada", first, 4)
    bob = receivers.connect("bob")
    receivers.receive("bob", bob, 3)
    wait_until(lambda: receivers.waiting() == {"ada": 5, "bob": 3}, lambda: str(receivers.waiting()))
    receivers.receive("bob", bob)
    wait_until(lambda: len(receivers.answers["bob"]) == 1, "none may be taken from Ada")
    assert receivers.waiting() == {"ada": 5, "bob": 3}
    assert receivers.answers["ada"] == []
