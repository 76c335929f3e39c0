"""The command lines of both daemons and the trees of services they make."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.broker import tap as broker_tap
from twisted_mq.broker.service import BrokerService
from twisted_mq.config.startup import Daemon
from twisted_mq.namesrv import tap as namesrv_tap
from twisted_mq.namesrv.service import NamesrvService


def parsed(tap, *words: str):
    options = tap.Options()
    options.parseOptions(list(words))
    return options


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ([], []),
        (["--embedded-namesrv"], ["--embedded-namesrv=9876"]),
        (["--embedded-namesrv", "1234"], ["--embedded-namesrv=1234"]),
        (["--embedded-namesrv=1234"], ["--embedded-namesrv=1234"]),
        (["--embedded-namesrv", "--port", "1"], ["--embedded-namesrv=9876", "--port", "1"]),
        (["--port", "1", "--embedded-namesrv", "0"], ["--port", "1", "--embedded-namesrv=0"]),
    ],
)
def test_port_of_the_embedded_name_server_may_be_left_out(words, completed):
    assert broker_tap.with_embedded_port(words) == completed


def test_command_line_wins_over_the_file(tmp_path):
    path = tmp_path / "broker.conf"
    path.write_text("listenPort=1\nbrokerName=file\nfileReservedTime=48\n")
    words = ["--config", str(path), "--port", "2", "--namesrv", "a:1;b:2", "--store", "/s", "--cluster", "X"]
    settings = parsed(broker_tap, *words, "--set", "flushDiskType=SYNC_FLUSH", "--set", "brokerId=3").settings
    assert (settings.listen_port, settings.broker_name, settings.file_reserved_time) == (2, "file", 48)
    assert (settings.name_servers, settings.store_path_root_dir) == (["a:1", "b:2"], "/s")
    assert (settings.broker_cluster_name, settings.flush_disk_type, settings.broker_id) == ("X", "SYNC_FLUSH", 3)


def test_command_line_sets_each_key_that_the_file_takes():
    settings = parsed(
        broker_tap, "--set", "highSpeedMode=true", "--set", "brokerId = 3", "--set", "duplicationEnable=false"
    ).settings
    assert settings.broker_id == 3


@pytest.mark.parametrize(
    ("parent", "umask"), [(None, None), ({}, 0o077), ({"umask": None}, 0o077), ({"umask": 0o027}, None)]
)
def test_files_are_the_users_own_unless_twistd_was_told_otherwise(parent, umask):
    """`twist`, which knows no umask, is such a parent too; a program that makes the services itself has none."""
    options = parsed(namesrv_tap)
    options.parent = parent
    assert options.umask == umask


@pytest.mark.parametrize(("parent", "waits"), [(None, 0), ({}, 1)])
def test_garbage_is_searched_for_when_the_process_has_started(monkeypatch, parent, waits):
    """A program that makes the services itself decides for itself."""
    calls = []
    monkeypatch.setattr("twisted_mq.config.garbage.gc.disable", lambda: calls.append("disable"))
    options = namesrv_tap.Options()
    options.parent = parent
    options.parseOptions([])
    assert calls == ["disable"] * waits


@pytest.mark.parametrize(("tap", "name"), [(broker_tap, "mqbroker"), (namesrv_tap, "mqnamesrv")])
def test_version_is_one_line(capsys, tap, name):
    with pytest.raises(SystemExit) as caught:
        parsed(tap, "--version")
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"{name} {version('rocketmq-twisted')}, compatible with Apache RocketMQ 5.3.3\n"


def test_broken_promise_is_ignored_where_that_is_wanted():
    with capturedLogs() as events:
        settings = parsed(
            broker_tap, "--ignore-unsupported", "--set", "duplicationEnable=true", "--set", "brokerId=3"
        ).settings
    assert settings.broker_id == 3
    said = "duplicationEnable=true is ignored: no other broker would take over from a lost master"
    assert said in [formatEvent(one) for one in events if one["log_level"].name == "warn"]


def test_name_server_keeps_updates_in_the_file_given(tmp_path):
    path = tmp_path / "namesrv.conf"
    path.write_text("")
    assert parsed(namesrv_tap, "--config", str(path)).settings.config_store_path == str(path)
    chosen = parsed(namesrv_tap, "--config", str(path), "--set", "configStorePath=/x").settings
    assert chosen.config_store_path == "/x"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "brokerName"], "--set brokerName: must be KEY=VALUE"),
        (
            ["--strict", "--set", "brokerNam=a"],
            "brokerNam=a: unknown key, did you mean brokerName?; --strict",
        ),
        (["--strict", "--set", "diskMaxUsedSpaceRatio=98"], "diskMaxUsedSpaceRatio=98: must be at most 95"),
        (["--set", "orderMessageEnable=maybe"], "orderMessageEnable=maybe: must be true or false"),
        (
            ["--set", "duplicationEnable=true"],
            "duplicationEnable=true: is not supported here: no other broker would take over from a lost master",
        ),
        (["--set", "brokerId=x"], "brokerId=x: must be a whole number"),
        (["--embedded-namesrv=x"], "--embedded-namesrv x: must be a port from 0 to 65535"),
        (["--embedded-namesrv", "65536"], "--embedded-namesrv 65536: must be a port from 0 to 65535"),
        (["extra"], "'extra' is not an option; see --help"),
    ],
)
def test_mistake_ends_the_process_with_one_line(words, message):
    with pytest.raises(SystemExit) as caught:
        parsed(broker_tap, *words)
    assert str(caught.value.code).startswith(f"mqbroker: {message}")


def test_name_server_is_one_service():
    root = namesrv_tap.makeService(parsed(namesrv_tap, "--port", "0"), Clock())
    assert isinstance(root, Daemon)
    (namesrv,) = root
    assert isinstance(namesrv, NamesrvService)
    assert namesrv.options.listen_port == 0


def test_broker_is_one_service():
    root = broker_tap.makeService(parsed(broker_tap, "--port", "0", "--store", "/nowhere"))
    assert [type(one) for one in root] == [BrokerService]


def test_embedded_name_server_keeps_its_files_in_the_store():
    options = parsed(broker_tap, "--embedded-namesrv", "0", "--store", "/s", "--bind", "127.0.0.1")
    (pair,) = broker_tap.makeService(options, Clock())
    assert isinstance(pair, broker_tap.EmbeddedNamesrv)
    assert list(pair) == []
    settings = broker_tap.embedded_settings(options.settings, 0)
    assert (settings.bind_address, settings.listen_port) == ("127.0.0.1", 0)
    assert settings.kv_config_path == "/s/namesrv/kvConfig.json"
    assert settings.config_store_path == "/s/namesrv/namesrv.properties"


def test_embedded_name_server_is_added_to_those_given():
    assert broker_tap.with_own([], 9876) == ["127.0.0.1:9876"]
    assert broker_tap.with_own(["a:1"], 9876) == ["a:1", "127.0.0.1:9876"]
    assert broker_tap.with_own(["127.0.0.1:9876"], 9876) == ["127.0.0.1:9876"]
