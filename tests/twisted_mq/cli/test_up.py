import json
import os
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from twisted_mq.cli.errors import CliError
from twisted_mq.cli.up import default_store, in_flags, up
from twisted_mq.remoting.listen import PortError, bind
from twisted_mq.storage.errors import StoreLocked


def test_the_store_lies_in_the_users_data_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_store() == "/data/mq/store"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_store() == os.path.expanduser("~/.local/share/mq/store")


def test_a_port_out_of_range_is_refused():
    result = CliRunner().invoke(up, ["--port", "65536"])
    assert (result.exit_code, "65536 is not in the range 0<=x<=65535" in result.stderr) == (2, True)


@pytest.fixture
def busy_port():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def test_a_busy_port_names_this_commands_flags(busy_port):
    with pytest.raises(PortError) as caught:
        bind("127.0.0.1", busy_port)
    assert caught.value.port == busy_port
    taken = f"port {busy_port} on 127.0.0.1 is in use: stop the program that uses it, or set another "
    assert in_flags(str(caught.value), "--namesrv-port") == taken + "--namesrv-port"
    with pytest.raises(PortError) as caught:
        bind("127.0.0.1", busy_port, "haListenPort")
    assert in_flags(str(caught.value), "--port") == taken + "--port"


def test_a_locked_store_names_this_commands_flag():
    assert in_flags(str(StoreLocked("/x")), "--port").endswith("use another --store for this one")


def test_wrong_ports_and_stores_are_told_in_flags(monkeypatch, busy_port):
    def fails(error):
        def run(main):
            raise error

        monkeypatch.setattr("twisted_mq.cli.run.run_under_reactor", run)
        result = CliRunner().invoke(up, ["--temporary", "--namesrv-port", "9"], standalone_mode=False)
        assert isinstance(result.exception, CliError)
        return str(result.exception)

    monkeypatch.setattr("twisted_mq.cli.logs.log_to_stderr", lambda verbose: None)
    monkeypatch.setattr(os, "umask", lambda mask: 0)
    assert fails(PortError("set another listenPort", 9)) == "set another --namesrv-port"
    assert fails(PortError("set another listenPort", 10)) == "set another --port"
    assert fails(StoreLocked("/x")).endswith("another --store for this one")


@pytest.mark.parametrize(
    "flags", [["--store", "x"], ["--port", "1"], ["--bind", "0.0.0.0"], ["--advertise", "10.0.0.1"]]
)
def test_ordered_groups_choose_their_ports_and_stores(flags):
    result = CliRunner().invoke(up, ["--ordered", *flags])
    assert (result.exit_code, "--ordered can only be combined with --namesrv-port" in result.stderr) == (2, True)


@pytest.fixture
def up_json():
    """Runs `mq up --json` with some flags; gives the one line that it printed, read, and stops it."""

    def run(*flags: str) -> dict[str, object]:
        command = [sys.executable, "-c", "from twisted_mq.cli.start import main; main()", "up", "--json", *flags]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                line = server.stdout.readline()
            finally:
                server.terminate()
            assert (server.stdout.read(), server.wait()) == ("", 0)
            return json.loads(line)

    return run


def test_json_has_the_addresses_of_free_ports_and_the_store(up_json, tmp_path):
    facts = up_json("--port", "0", "--store", str(tmp_path / "store"))
    assert list(facts) == ["namesrv", "broker", "grpc", "store_path"]
    assert facts["store_path"] == str(tmp_path / "store")
    addresses = {facts["namesrv"], facts["broker"]}
    assert len(addresses) == 2
    assert all(address.startswith("127.0.0.1:") for address in addresses)
    assert not facts["namesrv"].endswith(":9876")


def test_json_of_ordered_groups_has_their_masters_and_slaves(up_json):
    facts = up_json("--ordered", "--namesrv-port", "0")
    assert list(facts) == ["namesrv", "coordinator", "brokers", "store_path"]
    assert [(group, len(addresses)) for group, addresses in facts["brokers"].items()] == [
        ("broker-a", 2),
        ("broker-b", 2),
    ]
