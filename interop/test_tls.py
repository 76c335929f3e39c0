"""TLS with certificates on both sides: Apache's client and this project's meet both kinds of servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, OurPeer, unique
from interop.peers.line_peer import LinePeer, PeerError
from interop.peers.process import Process
from interop.peers.requirements import require_java
from interop.peers.servers import COMMANDS, Cluster, running
from interop.peers.toolchain import compile_programs, java_command
from tests.support.certificates import Authority, Files

pytestmark = pytest.mark.peer


@attrs.frozen
class Certificates:
    """Certificates of one run: the trusted authority, the servers' and the clients' own."""

    trusted: str
    server: Files
    client: Files

    def of_server(self) -> dict[str, str]:
        """Apache's settings of a server that wants a certificate of its clients, and shows one where it is a client."""
        return {
            "tls.server.mode": "permissive",
            "tls.test.mode.enable": "false",
            "tls.server.certPath": self.server.certificate,
            "tls.server.keyPath": self.server.key,
            "tls.server.need.client.auth": "require",
            "tls.server.authClient": "true",
            "tls.server.trustCertPath": self.trusted,
            **self.of_client(),
        }

    def of_client(self) -> dict[str, str]:
        return {
            "tls.enable": "true",
            "tls.test.mode.enable": "false",
            "tls.client.certPath": self.client.certificate,
            "tls.client.keyPath": self.client.key,
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": self.trusted,
        }


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    return Certificates(authority.path, authority.issue("server"), authority.issue("client"))


def with_properties(command: list[str], properties: dict[str, str]) -> list[str]:
    """A virtual machine's command line with system properties."""
    return [command[0], *(f"-D{key}={value}" for key, value in properties.items()), *command[1:]]


@attrs.define(eq=False)
class EncryptedCluster(Cluster):
    """Servers that take both kinds of connections, and use encrypted ones themselves."""

    tls: dict[str, str] = attrs.field(factory=dict)

    def _file(self, name: str, settings: dict[str, object]) -> None:
        super()._file(name, {**settings, **(self.tls if self.kind == "ours" else {})})

    def _launch(self, which: int, name: str, port: int) -> Process:
        files = (self.directory / "namesrv.conf", self.directory / "broker.conf")
        command = COMMANDS[self.kind](self.directory / "home", *files)[which]
        if self.kind == "apache":
            command = with_properties(command, self.tls)
        process = Process.start(command, self.directory / f"{name}.log", self.directory)
        process.wait_listening(port)
        return process


class EncryptedJava(JavaPeer):
    """A virtual machine whose clients show a certificate, and trust those of one authority."""

    def __init__(self, directory: Path, properties: dict[str, str]) -> None:
        home = directory / "java-home"
        home.mkdir()
        command = java_command(home, "256m", "Peer", classes=compile_programs())
        LinePeer.__init__(self, with_properties(command, properties), directory, "java-tls-peer")


@pytest.fixture(scope="module")
def encrypted_java(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    require_java()
    peer = EncryptedJava(tmp_path_factory.mktemp("java-tls"), certificates.of_client())
    yield peer
    peer.close()


@pytest.fixture(scope="module", params=list(COMMANDS))
def encrypted(
    request: pytest.FixtureRequest, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    require_java()
    with running(
        EncryptedCluster(request.param, tmp_path_factory.mktemp(request.param), tls=certificates.of_server())
    ) as servers:
        yield servers


@pytest.fixture(params=["java", "ours", "plain"])
def clients(
    request: pytest.FixtureRequest, encrypted: Cluster, encrypted_java: JavaPeer, our_client_process: OurPeer
) -> Iterator[Clients]:
    made = Clients(encrypted_java if request.param == "java" else our_client_process, encrypted.name_server)
    yield made
    made.stop()


@pytest.fixture
def arguments(request: pytest.FixtureRequest, certificates: Certificates) -> dict[str, Any]:
    """Return the arguments of our client; Apache's use system properties."""
    kind = request.node.callspec.params["clients"]
    files = {"tls_cert": certificates.client.certificate, "tls_key": certificates.client.key}
    return {"tls_trust": certificates.trusted, **files} if kind == "ours" else {}


def test_messages_go_there_and_back(clients: Clients, arguments: dict[str, Any]) -> None:
    topic, texts = unique("Topic"), {f"{number}" * 1000 for number in range(10)}
    producer = clients.producer(**arguments)
    for text in texts:
        assert producer.send(topic, text)["status"] == "SEND_OK"
    consumer = clients.push_consumer(unique("group"), topic, **arguments)
    consumer.wait_bodies(texts)


@pytest.mark.parametrize("clients", ["ours"], indirect=True)
def test_who_shows_no_certificate_or_trusts_nobody_is_refused(clients: Clients, certificates: Certificates) -> None:
    for trusted in (certificates.trusted, certificates.client.certificate):
        producer = clients.producer(tls_trust=trusted)
        with pytest.raises(PeerError) as caught:
            producer.send(unique("Topic"), "refused")
        assert caught.value.type == "NameServerUnreachable"
