"""The daemons as processes: lean start, clean stop, one line where they cannot start."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.daemons import RunningDaemon, environment, run_twistd, wait_until
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame

GET_BROKER_CLUSTER_INFO = 106
LOCAL = ("--bind", "127.0.0.1")


@pytest.fixture
def busy_port():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def ask(port: int, code: int) -> RemotingCommand:
    decoder = FrameDecoder()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(encode_frame(RemotingCommand.request(code)))
        while True:
            for answer in decoder.receive_data(link.recv(65536)):
                return answer


def port_of(line: str) -> int:
    return int(line.rpartition("port=")[2])


def test_name_server_serves_and_stops_cleanly(tmp_path):
    with RunningDaemon(sys.executable, tmp_path, "mqnamesrv", "--port", "0", *LOCAL) as daemon:
        answer = ask(port_of(daemon.wait_for("name server ready")), GET_BROKER_CLUSTER_INFO)
        assert (answer.code, json.loads(answer.body)) == (0, {"brokerAddrTable": {}, "clusterAddrTable": {}})
        assert daemon.terminate() in (0, -signal.SIGTERM)
    assert "Traceback" not in "\n".join(daemon.lines)
    assert os.listdir(tmp_path) == []


def test_installed_name_server_serves(installed_python, tmp_path):
    with RunningDaemon(installed_python, tmp_path, "mqnamesrv", "--port", "0", *LOCAL) as daemon:
        assert ask(port_of(daemon.wait_for("name server ready")), GET_BROKER_CLUSTER_INFO).code == 0
        assert daemon.terminate() in (0, -signal.SIGTERM)


def test_broker_with_embedded_name_server_registers_and_leaves_no_abort_file(tmp_path):
    words = ("mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "store", "--name", "b1", *LOCAL)
    with RunningDaemon(sys.executable, tmp_path, *words) as daemon:
        port = port_of(daemon.wait_for("name server ready"))
        daemon.wait_for("broker registered")
        info = ask(port, GET_BROKER_CLUSTER_INFO).body
        assert b'"clusterAddrTable":{"DefaultCluster":["b1"]}' in info
        assert (tmp_path / "store" / "abort").exists()
        assert daemon.terminate() in (0, -signal.SIGTERM)
    assert "Traceback" not in "\n".join(daemon.lines)
    assert os.listdir(tmp_path) == ["store"]
    assert not (tmp_path / "store" / "abort").exists()


@pytest.mark.parametrize(("options", "modes"), [((), {0o600, 0o700}), (("--umask", "027"), {0o640, 0o750})])
def test_files_of_a_store_are_their_owners_in_the_foreground_too(tmp_path, options, modes):
    """The files are the group's too, with an option of twistd."""
    store = tmp_path / "store"
    words = (*options, "mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "store", "--name", "b1", *LOCAL)
    with RunningDaemon(sys.executable, tmp_path, *words) as daemon:
        daemon.wait_for("broker registered")
        assert daemon.terminate() in (0, -signal.SIGTERM)
    found = [store, *store.rglob("*")]
    assert len(found) > 10
    assert {stat.S_IMODE(one.stat().st_mode) for one in found} == modes


def test_proxy_serves_grpc_and_stops_cleanly(tmp_path):
    config = tmp_path / "rmq-proxy.json"
    config.write_text(json.dumps({"proxyMode": "CLUSTER", "namesrvAddr": "127.0.0.1:1", "grpcServerPort": 0}))
    words = ("mqproxy", "--config", str(config), "--bind", "127.0.0.1")
    with RunningDaemon(sys.executable, tmp_path, *words) as daemon:
        port = port_of(daemon.wait_for("gRPC clients are served"))
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            assert connection.recv(9)[3] == 4  # SETTINGS
        assert daemon.terminate() in (0, -signal.SIGTERM)
    assert "Traceback" not in "\n".join(daemon.lines)


def test_proxy_refuses_a_file_that_asks_it_for_access_control(tmp_path):
    config = tmp_path / "rmq-proxy.json"
    config.write_text(json.dumps({"namesrvAddr": "127.0.0.1:1", "authenticationEnabled": True}))
    done = run_twistd(sys.executable, tmp_path, "--nodaemon", "--pidfile=", "mqproxy", "--config", str(config))
    assert (done.returncode, "authenticationEnabled" in done.stderr) == (1, True)


@pytest.mark.parametrize("daemon", ["mqnamesrv", "mqbroker"])
def test_busy_port_is_one_line_and_status_1(tmp_path, busy_port, daemon):
    words = ["--port", str(busy_port), *LOCAL, *(["--store", "store"] if daemon == "mqbroker" else [])]
    done = run_twistd(sys.executable, tmp_path, "--nodaemon", "--pidfile=", daemon, *words)
    message = (
        f"{daemon}: port {busy_port} on 127.0.0.1 is in use: stop the program that uses it, or set another listenPort\n"
    )
    assert (done.returncode, done.stderr) == (1, message)
    assert "Traceback" not in done.stdout


def test_busy_port_is_told_in_the_background_too(tmp_path, busy_port):
    words = ["--pidfile=it.pid", "--logfile=it.log", "mqnamesrv", "--port", str(busy_port), *LOCAL]
    done = run_twistd(sys.executable, tmp_path, *words)
    assert done.returncode == 1
    assert f"port {busy_port} on 127.0.0.1 is in use" in done.stderr and "Traceback" not in done.stderr
    wait_until(lambda: os.listdir(tmp_path) == ["it.log"])  # the parent ends before its child


def test_busy_port_of_the_embedded_name_server_starts_no_broker(tmp_path, busy_port):
    words = ["--embedded-namesrv", str(busy_port), "--port", "0", "--store", "store", *LOCAL]
    done = run_twistd(sys.executable, tmp_path, "--nodaemon", "--pidfile=", "mqbroker", *words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"mqbroker: port {busy_port} on 127.0.0.1 is in use")
    assert os.listdir(tmp_path) == []


def test_locked_store_is_one_line_and_status_1(tmp_path):
    words = ("mqbroker", "--port", "0", "--store", "store", *LOCAL)
    with RunningDaemon(sys.executable, tmp_path, *words) as first:
        first.wait_for("registers as")
        done = run_twistd(sys.executable, tmp_path, "--nodaemon", "--pidfile=", *words)
        assert done.returncode == 1
        assert "locked by a running broker" in done.stderr
        assert done.stderr.startswith("mqbroker: ") and done.stderr.count("\n") == 1
        assert first.terminate() in (0, -signal.SIGTERM)


def test_unwritable_store_is_one_line_and_status_1(tmp_path):
    (tmp_path / "file").write_text("")
    words = ("--port", "0", "--store", "file/store", *LOCAL)
    done = run_twistd(sys.executable, tmp_path, "--nodaemon", "--pidfile=", "mqbroker", *words)
    assert done.returncode == 1
    assert done.stderr.startswith("mqbroker: file/store: not writable") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("daemon", "words", "message"),
    [
        ("mqnamesrv", ["--config", "none.conf"], "none.conf: cannot be read: No such file or directory"),
        ("mqnamesrv", ["--config", "x.conf"], "x.conf line 2: listenPort=99999: must be at most 65535"),
        ("mqbroker", ["--config", "x.conf"], "x.conf line 2: listenPort=99999: must be at most 65535"),
        ("mqbroker", ["--port", "x"], "listenPort=x: must be a whole number"),
        ("mqbroker", ["--embedded-namesrv", "70000"], "--embedded-namesrv 70000: must be a port from 0 to 65535"),
        ("mqbroker", ["start"], "'start' is not an option; see --help"),
        ("mqbroker", ["--bogus"], "option --bogus not recognized"),
        ("mqnamesrv", ["--set", "brokerName"], "--set brokerName: must be KEY=VALUE"),
        (
            "mqnamesrv",
            ["--strict", "--set", "listenPrt=x"],
            "listenPrt=x: unknown key, did you mean listenPort?; --strict refuses it",
        ),
    ],
)
def test_wrong_configuration_is_one_line_and_status_1(tmp_path, daemon, words, message):
    (tmp_path / "x.conf").write_text("bindAddress=127.0.0.1\nlistenPort=99999\n")
    done = run_twistd(sys.executable, tmp_path, daemon, *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{daemon}: {message}\n")


@pytest.mark.parametrize(
    "module, used",
    [("twisted_mq.namesrv.service", ""), ("twisted_mq.client", ""), ("twisted_mq.broker.service", "numpy")],
)
def test_start_imports_nothing_heavy(tmp_path, module, used):
    heavy = "numpy pandas pyarrow pyspark matplotlib click rich jinja2 klein hypothesis pytest"
    code = f"import sys, {module}; print([n for n in {heavy.split()} if n in sys.modules and n != {used!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(tmp_path), env=environment(tmp_path), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
