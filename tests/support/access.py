"""Servers that ask who it is: their settings, and requests that are signed."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.task import Clock

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.access.server_access import ServerAccess, server_access
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.bodies import encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import Credentials, sign
from twisted_mq.reactor_threads import at_once

SECRET = "planted-secret-of-root"
ROOT = Credentials("root", SECRET)
ON: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": json.dumps({"username": "root", "password": SECRET}),
}


def access_of(folder: str, clock: Clock | None = None, **options: Any) -> ServerAccess:
    """Return the access control of a broker with these options, with files in the folder."""
    return server_access(BrokerOptions(**options), folder, "CapCluster", (clock or Clock()).seconds, at_once)


def asking_broker(folder: str, **options: Any) -> BrokerInMemory:
    """A broker that asks everybody; root may do everything."""
    clock = Clock()
    clock.advance(1_795_217_217.0)
    return BrokerInMemory(access=access_of(folder, clock, **(ON | options)), clock=clock)


class Signer:
    """A client's connection whose requests are signed."""

    def __init__(self, broker: BrokerInMemory, credentials: Credentials | None) -> None:
        self.peer: Peer = broker.connect()
        self._credentials = credentials

    def ask(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> tuple[int, str | None]:
        """Code and remark of the answer."""
        answer = self.answer(code, fields, body)
        return answer.code, answer.remark

    def answer(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
        command = RemotingCommand.request(code, dict(fields or {}), body)
        if self._credentials is not None:
            sign(command, self._credentials)
        self.peer.send(command)
        (answer,) = [one for one in self.peer.received() if one.is_response]
        return answer

    def body(self, code: int, body: object, **fields: str) -> tuple[int, str | None]:
        """Code and remark of the answer to a request with a JSON body."""
        return self.ask(code, fields, encode_body(body))


def make_user(root: Signer, name: str, password: str = "secret", **more: str) -> None:
    """Have a user made."""
    body = json.dumps({"password": password, **more}).encode()
    assert root.ask(RequestCode.AUTH_CREATE_USER, {"username": name}, body) == (0, None)


def allow(root: Signer, name: str, resource: str, *actions: str, decision: str = "Allow", source: str = "") -> None:
    """Have a rule made."""
    entry = {"resource": resource, "actions": list(actions), "decision": decision}
    entry |= {"sourceIps": [source]} if source else {}
    body = json.dumps({"policies": [{"policyType": "Custom", "entries": [entry]}]}).encode()
    assert root.ask(RequestCode.AUTH_CREATE_ACL, {"subject": f"User:{name}"}, body) == (0, None)
