"""The coordinator on Apache's ZooKeeper: the contract, and what only real servers do."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl
from twisted.internet import defer, protocol, reactor

from interop.peers.process import free_port, wait_until
from interop.peers.requirements import require_java
from interop.peers.toolchain import QUICK_START, compile_programs
from interop.peers.zookeeper import ZooKeeperEnsemble, ZooKeeperServer
from tests.twisted_mq.coordination import kazoo_case
from tests.twisted_mq.coordination.contract import CONNECTED, DISCONNECTED, LOST, events_of
from twisted_mq.coordination.interfaces import Check, Create, Delete, NoAnswer, Node, NotAllowed, Put
from twisted_mq.coordination.zookeeper import ZooKeeperCoordinator

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    require_java()
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    try:
        server.wait_serving()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="class")
def server_of_class(request: pytest.FixtureRequest, server: ZooKeeperServer) -> None:
    request.cls.server_port = server.port


@pytest.mark.usefixtures("server_of_class")
class ZooKeeperContractCase(kazoo_case.KazooContract):
    pass


@pytest.mark.usefixtures("server_of_class")
class ZooKeeperCase(kazoo_case.KazooCase):
    async def test_the_session_time_is_what_the_server_grants(self) -> None:
        for asked, granted in ((600.0, 10.0), (0.1, 1.0), (3.0, 3.0)):
            one = self.coordinator(session_seconds=asked)
            await self.wait(one.start())
            self.assertEqual(one.session_seconds, granted)

    async def test_who_has_the_password_alone_reads_and_changes(self) -> None:
        owner = self.coordinator(auth="mq:secret")
        await self.wait(owner.start())
        await self.wait(owner.commit([Create("/a", b"1"), Create("/a/e", ephemeral=True)]))
        for stranger in (self.coordinator(auth="mq:wrong"), self.coordinator()):
            await self.wait(stranger.start())
            refused = (
                stranger.read("/a"),
                stranger.children("/a"),
                stranger.commit([Put("/a", b"2", 0)]),
                stranger.commit([Create("/b"), Create("/a/b")]),
                stranger.commit([Check("/a", 0), Delete("/a/e")]),
            )
            for asked in refused:
                self.assertIn("check orderCoordinatorAuth", await self.fails(NotAllowed, asked))
        self.assertEqual(await self.wait(owner.children("/")), ("a",))
        again = self.coordinator(auth="mq:secret")
        await self.wait(again.start())
        await self.wait(again.commit([Put("/a", b"2", 0)]))
        self.assertEqual(await self.wait(again.read("/a")), Node(b"2", 1))

    async def test_a_chroot_without_rights_is_refused_at_the_start(self) -> None:
        def protect(client: KazooClient) -> None:
            client.create("/mq/private", acl=[make_digest_acl("mq", "secret", all=True)])

        await self.in_client(protect)
        one = self.coordinator("/mq/private", auth="mq:wrong")
        refusal = await self.fails(NotAllowed, one.start())
        self.assertEqual(
            refusal,
            "ZooKeeper refuses to read /mq/private: check orderCoordinatorAuth and the access rights of the node",
        )
        owner = self.coordinator("/mq/private", auth="mq:secret")
        await self.wait(owner.start())

    async def test_a_cut_that_nothing_tells_of_is_noticed_by_unanswered_questions(self) -> None:
        one = await self.started()
        told = events_of(one)
        self.links[one].cut(silently=True)
        asked = one.read("/")
        await self.fails(NoAnswer, asked)
        await self.until(lambda: told == [DISCONNECTED] and not one.holds())
        self.heal(one)
        await self.until(lambda: CONNECTED in told)
        self.assertTrue(one.holds())

    async def test_a_server_that_listens_and_says_nothing_fails_the_start(self) -> None:
        one = self.coordinator(connect_seconds=1.0)
        self.links[one].cut(silently=True)
        await self.fails(NoAnswer, one.start())

    async def test_a_failed_start_says_what_went_wrong(self) -> None:
        one = self.direct("127.0.0.1:1", connect_seconds=1.0)
        self.assertRegex(await self.fails(NoAnswer, one.start()), r"127\.0\.0\.1:1 in 1 s: .*Connection refused")

    async def test_a_session_lost_while_the_reactor_stands_still_does_not_hold(self) -> None:
        """The next session starts in its thread in between, before any callback."""
        one = self.direct(f"127.0.0.1:{self.server_port}/mq")
        await self.wait(one.start())
        told, before = events_of(one), one._held
        expiring = KazooClient(f"127.0.0.1:{self.server_port}", client_id=before.client_id)
        expiring.start(kazoo_case.PATIENCE_SECONDS)
        expiring.stop()
        wait_until(lambda: one._present is not before and one._present.holds_until > 0, "the next session holds")
        self.assertEqual((told, one.holds()), ([], False))
        await self.until(lambda: CONNECTED in told)
        self.assertTrue(one.holds())

    async def test_a_thousand_changes_are_each_told_or_seen(self) -> None:
        """A watch fires once and is armed again: what happens between is read."""
        one, other = await self.started(), await self.started()
        await self.wait(other.commit([Create("/a", b"0")]))
        seen: list[int] = []

        def read() -> None:
            one.read("/a").addCallback(lambda node: seen.append(int(node.data)))

        one.watch("/a", read)
        changes = [other.commit([Put("/a", str(number).encode(), None)]) for number in range(1, 1001)]
        await self.wait(defer.gatherResults(changes))
        await self.until(lambda: seen and seen[-1] == 1000)
        self.assertEqual(seen, sorted(seen))


class ServerFaultsCase(kazoo_case.KazooCase):
    """Each test has a server of its own."""

    @pytest.fixture(autouse=True)
    def server(self, tmp_path: Path) -> Iterator[None]:
        require_java()
        self.server = ZooKeeperServer(tmp_path)
        self.server_port = self.server.port
        self.server.start()
        try:
            self.server.wait_serving()
            yield
        finally:
            self.server.kill()

    async def test_a_server_gone_for_longer_than_a_session_ends_none(self) -> None:
        one = self.coordinator(session_seconds=10.0)
        await self.wait(one.start())
        await self.wait(one.commit([Create("/e", ephemeral=True)]))
        told, session = events_of(one), one.session_id
        self.server.kill()
        await self.until(lambda: not one.holds())
        await self.pass_seconds(1.2 * one.session_seconds)
        self.assertEqual((told, one.session_id), ([DISCONNECTED], session))
        self.server.start()
        await self.until(lambda: CONNECTED in told)
        self.assertEqual((told, one.session_id, one.holds()), ([DISCONNECTED, CONNECTED], session, True))
        self.assertEqual(await self.wait(one.read("/e")), Node(b"", 0, session))

    async def test_a_paused_server_confirms_nothing(self) -> None:
        one = await self.started()
        told = events_of(one)
        self.addCleanup(self.server.signal, signal.SIGCONT)
        self.server.signal(signal.SIGSTOP)
        await self.until(lambda: not one.holds())
        await self.until(lambda: told == [DISCONNECTED])
        self.server.signal(signal.SIGCONT)
        await self.until(lambda: CONNECTED in told)
        self.assertTrue(one.holds())

    async def test_a_paused_process_knows_at_once_that_nothing_holds(self) -> None:
        process = PausedProcess()
        arguments = [sys.executable, "-m", "interop.peers.holding_program", f"{self.server.address}/mq"]
        reactor.spawnProcess(process, sys.executable, arguments, env=None)
        self.addCleanup(process.kill)
        await self.until(lambda: "holds" in process.lines)
        self.assertEqual(process.lines, ["CONNECTED", "holds"])
        process.transport.signalProcess(signal.SIGSTOP)
        await self.pass_seconds(6)
        process.transport.signalProcess(signal.SIGCONT)
        await self.until(lambda: process.lines[-1] == "CONNECTED")
        after = [line for line in process.lines[2:] if line != "DISCONNECTED"]
        self.assertEqual(after, ["paused: does not hold", "LOST", "CONNECTED"])


class PausedProcess(protocol.ProcessProtocol):
    """Output of a process, line by line; its log is not kept."""

    def __init__(self) -> None:
        self._printed = b""
        self.ended: defer.Deferred[None] = defer.Deferred()

    def outReceived(self, data: bytes) -> None:
        self._printed += data

    @property
    def lines(self) -> list[str]:
        return self._printed.decode().split("\n")[:-1]

    def processEnded(self, reason: object) -> None:
        self.ended.callback(None)

    def kill(self) -> defer.Deferred[None]:
        self.transport.signalProcess(signal.SIGKILL)
        return self.ended


class EnsembleCase(kazoo_case.KazooCase):
    @pytest.fixture(autouse=True)
    def ensemble(self, tmp_path: Path) -> Iterator[None]:
        require_java()
        self.ensemble = ZooKeeperEnsemble(tmp_path)
        try:
            self.ensemble.start()
            self.server_port = self.ensemble.servers[0].port
            yield
        finally:
            self.ensemble.kill()

    async def test_the_loss_of_the_leader_ends_no_session(self) -> None:
        one = self.direct(f"{self.ensemble.address}/mq")
        await self.wait(one.start())
        told, session = events_of(one), one.session_id
        await self.wait(one.commit([Create("/e", b"1", ephemeral=True)]))
        self.ensemble.leader().kill()
        await self.until(lambda: DISCONNECTED in told)
        await self.until(lambda: told[-1] is CONNECTED)
        self.assertEqual((one.session_id, LOST in told), (session, False))
        await self.wait(one.commit([Put("/e", b"2", 0)]))
        self.assertEqual(await self.wait(one.read("/e")), Node(b"2", 1, session))

    async def test_a_server_cut_from_its_quorum_confirms_nothing(self) -> None:
        """The server answers reads until it notices; a session that another quorum ends would seem alive."""
        leader = self.ensemble.leader()
        follower = next(server for server in self.ensemble.servers if server is not leader)
        others = [server for server in self.ensemble.servers if server is not follower]
        one = self.direct(f"{follower.address}/mq")
        await self.wait(one.start())
        for server in others:
            server.signal(signal.SIGSTOP)
        self.assertEqual(await self.wait(one.children("/")), ())
        await self.until(lambda: not one.holds())
        for server in others:
            server.signal(signal.SIGCONT)
        await self.until(one.holds)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create certificates of a server and two clients; `trust.p12` has all except the second client's."""
    require_java()
    directory = tmp_path_factory.mktemp("certificates")
    for name in ("server", "client", "other"):
        make_certificate(directory, name)
    return directory


class TlsServerCase(kazoo_case.KazooCase):
    """Certificates and keys are made by the JDK's keytool for 127.0.0.1; the server trusts `client`."""

    client_auth: str

    @pytest.fixture(autouse=True)
    def server(self, tmp_path: Path, certificates: Path) -> Iterator[None]:
        self.certificates = certificates
        self.secure_port = free_port()
        self.server = ZooKeeperServer(tmp_path, extra=tls_lines(certificates, self.secure_port, self.client_auth))
        self.server_port = self.server.port
        self.server.start()
        try:
            self.server.wait_serving()
            yield
        finally:
            self.server.kill()

    def secure(self, ca: str, client: str = "") -> ZooKeeperCoordinator:
        """Trusts the certificate `ca`, and has one of its own where `client` names it."""
        own = {}
        if client:
            file = self.certificates / client
            own = {"certificate_file": f"{file}.pem", "key_file": f"{file}.key"}
        address = f"127.0.0.1:{self.secure_port}/mq"
        return self.direct(address, ca_file=str(self.certificates / f"{ca}.pem"), connect_seconds=5.0, **own)


class TlsCase(TlsServerCase):
    client_auth = "none"

    async def test_a_server_whose_certificate_is_trusted_is_used(self) -> None:
        one = self.secure("server")
        await self.wait(one.start())
        await self.wait(one.commit([Create("/a", b"1")]))
        self.assertEqual(await self.wait(one.read("/a")), Node(b"1", 0))
        self.assertTrue(one.holds())

    async def test_a_server_whose_certificate_is_not_trusted_is_refused(self) -> None:
        self.assertIn("CERTIFICATE_VERIFY_FAILED", await self.fails(NoAnswer, self.secure("other").start()))


class ClientCertificateCase(TlsServerCase):
    client_auth = "need"

    async def test_a_client_shows_its_certificate(self) -> None:
        one = self.secure("server", "client")
        await self.wait(one.start())
        await self.wait(one.commit([Create("/a", b"1")]))

    async def test_a_client_whose_certificate_is_not_trusted_has_no_session(self) -> None:
        for client in ("other", ""):
            await self.fails(NoAnswer, self.secure("server", client).start())


PASSWORD = "changeit"


def make_certificate(directory: Path, name: str) -> None:
    """The file NAME.pem with a certificate for 127.0.0.1; beside it NAME.key, and NAME.p12 with both."""
    own, file = directory / f"{name}.p12", directory / f"{name}.pem"
    made = ["-genkeypair", "-keyalg", "RSA", "-dname", f"CN={name}", "-ext", "san=ip:127.0.0.1", "-validity", "2"]
    keytool(own, name, *made)
    keytool(own, name, "-exportcert", "-rfc", "-file", str(file))
    if name != "other":
        keytool(directory / "trust.p12", name, "-importcert", "-noprompt", "-file", str(file))
    export = ["java", *QUICK_START, "-cp", str(compile_programs()), "ExportKey", str(own), PASSWORD, name]
    key = subprocess.run(export, check=True, capture_output=True)
    file.with_suffix(".key").write_bytes(key.stdout)


def keytool(store: Path, name: str, *words: str) -> None:
    command = ["keytool", *words, "-keystore", str(store), "-storepass", PASSWORD, "-alias", name]
    subprocess.run(command, check=True, capture_output=True)


def tls_lines(directory: Path, port: int, client_auth: str) -> tuple[str, ...]:
    return (
        f"secureClientPort={port}",
        "secureClientPortAddress=127.0.0.1",
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        f"ssl.keyStore.location={directory / 'server.p12'}",
        f"ssl.keyStore.password={PASSWORD}",
        f"ssl.trustStore.location={directory / 'trust.p12'}",
        f"ssl.trustStore.password={PASSWORD}",
        f"ssl.clientAuth={client_auth}",
    )
