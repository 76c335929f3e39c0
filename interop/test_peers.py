"""The peers' own promises: what is missing is named, in CI it fails, and a process that dies says why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interop.peers import requirements, setup, toolchain
from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.line_peer import LinePeer
from interop.peers.process import PeerFailed, Process, free_port


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No commands on the path and an empty cache."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(requirements, "java_problem", requirements.java_problem.__wrapped__)


@pytest.mark.usefixtures("bare_machine")
def test_without_java_a_test_skips_and_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no java, javac, mvn on the path"):
        requirements.require_java()


@pytest.mark.usefixtures("bare_machine")
def test_without_java_a_test_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"no java, javac, mvn on the path.*CI=true"):
        requirements.require_java()


@pytest.mark.parametrize("which", toolchain.JARS)
def test_file_that_names_jars_is_there(which: str) -> None:
    assert (toolchain.HERE / toolchain.JARS[which][0]).is_file()


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)], ids=["at home", "in CI"])
def test_setup_names_what_it_could_not_get(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, status: int
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(setup, "CLIENTS", {name: CLIENTS[name] for name in ("go-5.1.3", "node-1.0.8")})
    assert setup.main() == status
    said = capsys.readouterr().err
    assert "missing commands: java, javac, mvn; install a JDK 17 and Maven" in said
    for name, command in (("go-5.1.3", "go"), ("node-1.0.8", "npm")):
        why = f"[Errno 2] No such file or directory: '{command}'"
        assert f"Apache's gRPC client {name} is not available: {why}; tests with it cannot run" in said


def test_maven_is_not_missed_where_the_jars_lie(bare_machine: None, tmp_path: Path) -> None:
    for which, (_, names) in toolchain.JARS.items():
        toolchain.jar_directory(which).mkdir(parents=True)
        for name in names:
            (toolchain.jar_directory(which) / name).touch()
    assert toolchain.missing_tools() == ["java", "javac"]


def test_two_processes_that_compile_at_once_both_have_the_classes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second one finds the directory in place when its own is done."""

    def compiled_by_both(command: list[str], **options: object) -> None:
        made = Path(command[command.index("-d") + 1])
        for directory in (made, toolchain.cache_directory() / f"interop-{toolchain.sources_digest()}"):
            directory.mkdir()
            (directory / "Peer.class").touch()

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(toolchain.subprocess, "run", compiled_by_both)
    assert [path.name for path in toolchain.compile_programs().iterdir()] == ["Peer.class"]


def test_a_server_that_ends_before_it_listens_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such store')"]
    process = Process.start(command, tmp_path / "server.log", tmp_path)
    with pytest.raises(PeerFailed, match=r"ended with 1 before listening:\nno such store"):
        process.wait_listening(free_port())


def test_a_client_program_that_ends_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "input(); raise SystemExit('library crashed')"]
    peer = LinePeer(command, tmp_path, "crash")
    with pytest.raises(PeerFailed, match=r"the peer ended: answer to command 1\nlibrary crashed"):
        peer.request("send")
    peer.close()


def test_processes_that_choose_ports_at_once_get_ports_of_their_own() -> None:
    program = "from interop.peers.process import free_port; print(*(free_port() for _ in range(100)))"
    children = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    ports = [int(word) for child in children for word in child.communicate()[0].split()]
    assert len({port + near for port in ports for near in range(-2, 2)}) == 4 * 4 * 100
