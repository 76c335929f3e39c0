import os

from click.testing import CliRunner

from twisted_mq.cli.up import default_store, up


def test_the_store_lies_in_the_users_data_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_store() == "/data/mq/store"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_store() == os.path.expanduser("~/.local/share/mq/store")


def test_a_port_out_of_range_is_refused():
    result = CliRunner().invoke(up, ["--port", "65536"])
    assert (result.exit_code, "65536 is not in the range 0<=x<=65535" in result.stderr) == (2, True)
