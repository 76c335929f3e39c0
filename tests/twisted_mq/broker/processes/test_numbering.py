"""Settings of one of several brokers: no two share a name, a port or a folder."""

from __future__ import annotations

import pytest

from twisted_mq.broker import tap
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processes.numbering import MOST_BROKERS, numbered, own_file


def test_each_broker_has_its_own_name_ports_and_folders():
    options = BrokerOptions(
        broker_name="b", listen_port=10911, ha_listen_port=10912, grpc_server_port=8081, metrics_prom_exporter_port=5557,
        store_path_root_dir="/s", store_path_commit_log="/fast",
    )  # fmt: skip
    third = numbered(options, 2)
    assert (third.broker_name, third.listen_port, third.ha_listen_port) == ("b-2", 10931, 10932)
    assert (third.grpc_server_port, third.metrics_prom_exporter_port) == (8101, 5577)
    assert (third.store_path_root_dir, third.store_path_commit_log) == ("/s/b-2", "/fast/b-2")
    assert own_file(third) == "/s/b-2/config/broker.conf"
    assert (options.broker_name, options.listen_port) == ("b", 10911)


def test_ports_of_all_brokers_differ():
    options = BrokerOptions(listen_port=10911)
    used = [one.listen_port + gap for one in (numbered(options, n) for n in range(MOST_BROKERS)) for gap in (-2, 0, 1)]
    assert len(set(used)) == 3 * MOST_BROKERS


def test_a_free_port_no_port_and_an_unset_folder_stay():
    one = numbered(BrokerOptions(listen_port=0, ha_listen_port=0, grpc_server_port=-1), 5)
    assert (one.listen_port, one.ha_listen_port, one.grpc_server_port, one.store_path_commit_log) == (0, 0, -1, None)


def test_a_port_past_the_last_one_is_refused():
    assert numbered(BrokerOptions(listen_port=65525), 1).listen_port == 65535
    with pytest.raises(ValueError, match="listenPort=65526 leaves no port for broker 1: use a lower one"):
        numbered(BrokerOptions(listen_port=65526), 1)


def parsed(*words: str) -> tap.Options:
    options = tap.Options()
    options.parseOptions(list(words))
    return options


def test_a_numbered_broker_takes_its_settings():
    options = parsed("--name", "b", "--port", "10911", "--store", "/s", "--broker-number", "1")
    settings = options.settings
    assert (settings.broker_name, settings.listen_port, settings.broker_config_path) == (
        "b-1", 10921, "/s/b-1/config/broker.conf",
    )  # fmt: skip
    assert options.brokers is None


def test_changes_at_run_time_are_kept_by_their_broker_alone(tmp_path):
    shared = tmp_path / "shared.conf"
    shared.write_text(f"brokerName=b\nstorePathRootDir={tmp_path}\nfileReservedTime=48\nmaxMessageSize=1000\n")
    own = tmp_path / "b-1" / "config" / "broker.conf"
    own.parent.mkdir(parents=True)
    own.write_text("fileReservedTime=12\nmaxMessageSize=2000\n")
    words = ("--config", str(shared), "--set", "maxMessageSize=3000")
    first, second = (parsed(*words, "--broker-number", str(number)).settings for number in (0, 1))
    assert (first.file_reserved_time, first.max_message_size) == (48, 3000)
    assert (second.file_reserved_time, second.max_message_size) == (12, 3000)
    own.write_text("listenPort=1\n")
    with pytest.raises(SystemExit, match="listenPort"):
        parsed(*words, "--broker-number", "1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--brokers", "1"], "--brokers 1: must be a number from 2 to 64"),
        (["--brokers", "65"], "--brokers 65: must be a number from 2 to 64"),
        (["--brokers", "x"], "--brokers x: must be a number from 2 to 64"),
        (["--broker-number", "64"], "--broker-number 64: must be a number from 0 to 63"),
        (["--brokers", "2", "--broker-number", "1"], "--brokers and --broker-number cannot be combined"),
        (["--brokers", "2", "--port", "65530"], "listenPort=65530 leaves no port for broker 1: use a lower one"),
    ],
)
def test_mistakes_in_numbers_end_the_process(words, message):
    with pytest.raises(SystemExit) as caught:
        parsed(*words)
    assert str(caught.value.code) == f"mqbroker: {message}"


def test_words_for_the_supervisor_alone_do_not_reach_its_brokers():
    words = parsed("--brokers", "4", "--embedded-namesrv", "1", "--port", "5", "--set", "a=b").words
    assert tap.words_of_one(words) == ["--port", "5", "--set", "a=b"]
    assert tap.words_of_one(["--brokers=4", "--name", "x"]) == ["--name", "x"]
