"""The broker's settings over the wire: typed keys of an allow-list, all or none."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tests.support.broker import BrokerInMemory
from tests.support.heartbeat import heartbeat
from tests.support.store_load import START_MS, small_config
from tests.twisted_mq.broker.processors.test_pull import pull
from tests.twisted_mq.broker.processors.test_send import fields, send
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processors.admin_config import FIXED
from twisted_mq.config.known_keys import known_keys
from twisted_mq.config.options import option, option_fields, options_text
from twisted_mq.protocol.bodies import DataVersion, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.message_store import FileMessageStore


def update(broker: BrokerInMemory, text: str) -> RemotingCommand:
    return broker.connect().ask(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


def settings(broker: BrokerInMemory) -> dict[str, str]:
    answer = broker.connect().ask(RequestCode.GET_BROKER_CONFIG)
    return dict(line.split("=", 1) for line in answer.body.decode().splitlines())


def test_settings_are_shown_under_apaches_keys() -> None:
    shown = settings(BrokerInMemory())
    assert (shown["brokerName"], shown["flushDiskType"]) == ("broker-cap", "ASYNC_FLUSH")
    assert set(shown) <= known_keys().keys() | option_fields(BrokerOptions).keys()
    assert list(shown) == sorted(shown)


def test_what_was_left_to_the_broker_is_shown_as_it_became() -> None:
    broker = BrokerInMemory(listen_port=0, parts={"ha_address": "127.0.0.3:20912"})
    shown = settings(broker)
    assert [shown[key] for key in ("brokerIP1", "listenPort", "brokerIP2", "haListenPort")] == [
        "127.0.0.2", "20911", "127.0.0.3", "20912",
    ]  # fmt: skip


def test_a_key_without_effect_does_not_pretend() -> None:
    shown = settings(BrokerInMemory(force_register=False, os_page_cache_busy_time_out_mills=1, ha_shared_secret="s"))
    assert shown["forceRegister"] == "true"
    assert not {"osPageCacheBusyTimeOutMills", "haSharedSecret"} & shown.keys()


def test_fixed_settings_are_those_without_an_option_that_counts() -> None:
    fields = option_fields(BrokerOptions)
    assert FIXED.keys() <= known_keys().keys()
    assert [key for key in FIXED if key in fields and fields[key].metadata["has_effect"]] == []


def test_clients_are_not_told_of_traces_where_none_are_taken() -> None:
    broker = BrokerInMemory(trace_on=False)
    peer = broker.connect()
    assert send(peer).ext_fields["TRACE_ON"] == "false"
    assert peer.ask(RequestCode.SEND_MESSAGE_V2, fields(), b"x", serialize_type=1).ext_fields["TRACE_ON"] == "false"
    (record, _) = broker.store.get_message("T", 0, 0, 32, 1 << 20, None).records
    assert decode_message(record).properties["TRACE_ON"] == "false"


def test_silence_of_clients_is_measured_by_the_option() -> None:
    broker = BrokerInMemory(channel_expired_timeout=5000)
    peer = broker.connect()
    heartbeat(peer, "G", "T", producer="P")
    broker.clock.advance(5.001)
    broker.controller.close_expired_clients()
    assert (broker.controller.consumers.groups, broker.controller.producers.groups) == ({}, {})


def test_a_change_has_effect_and_raises_the_version() -> None:
    broker = BrokerInMemory()
    assert update(broker, "autoCreateTopicEnable=false\nlitePullMessageEnable=false\n").code == 0
    assert settings(broker)["litePullMessageEnable"] == "false"
    assert send(broker.connect()).code == ResponseCode.TOPIC_NOT_EXIST
    version = broker.connect().ask(RequestCode.GET_BROKER_CONFIG).ext_fields["version"]
    assert decode_body(DataVersion, version.encode()).counter == 1


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("longPollingEnable=false\nbrokerName=evil\n", ResponseCode.NO_PERMISSION, "brokerName=evil"),
        ("longPollingEnable=false\nstorePathRootDir=/\n", ResponseCode.NO_PERMISSION, "storePathRootDir=/"),
        ("longPollingEnable=false\nbrokerConfigPath=/etc/x\n", ResponseCode.NO_PERMISSION, "brokerConfigPath=/etc/x"),
        ("longPollingEnable=false\nnoSuchKey=1\n", ResponseCode.NO_PERMISSION, "noSuchKey=1"),
        (
            "longPollingEnable=maybe\n",
            ResponseCode.INVALID_PARAMETER,
            "longPollingEnable=maybe: must be true or false",
        ),
        (
            "longPollingEnable=false\nmaxMessageSize=-1\n",
            ResponseCode.INVALID_PARAMETER,
            "maxMessageSize=-1: must be at least 1",
        ),
        (
            "longPollingEnable=false\ndeleteWhen=04;24\n",
            ResponseCode.INVALID_PARAMETER,
            "deleteWhen=04;24: must be hours from 0 to 23",
        ),
        ("longPollingEnable=\\u12\n", ResponseCode.INVALID_PARAMETER, "line 1"),
    ],
)
def test_a_refused_key_is_named_and_changes_nothing(text: str, code: int, named: str) -> None:
    broker = BrokerInMemory()
    answer = update(broker, text)
    assert answer.code == code
    assert answer.remark is not None and named in answer.remark
    assert broker.options == BrokerInMemory().options


def test_hours_of_deletion_change_at_the_next_turn(tmp_path: Path) -> None:
    store = FileMessageStore(small_config(tmp_path), lambda: START_MS)
    broker = BrokerInMemory(store=store)
    assert update(broker, "deleteWhen=05;17\n").code == 0
    assert settings(broker)["deleteWhen"] == "05;17"
    assert store.retention._config.delete_when == "05;17"
    store.close()


def test_another_permission_is_registered_and_no_send_target_is_kept() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    before, broker.registered[:] = broker.controller.topics.data_version.counter, []
    assert update(broker, "brokerPermission=2\n").code == 0
    assert (broker.registered, broker.controller.topics.data_version.counter) == ([None], before + 1)
    assert pull(peer).code == ResponseCode.NO_PERMISSION


def test_groups_are_no_longer_made_by_themselves() -> None:
    broker = BrokerInMemory()
    assert update(broker, "autoCreateSubscriptionGroup=false\n").code == 0
    assert broker.controller.groups.find("new") is None


def test_limits_reach_the_store() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    for _ in range(3):
        send(peer)
    assert update(broker, "maxMessageSize=4\nmaxTransferCountOnMessageInMemory=2\n").code == 0
    assert send(peer, b"hello").code == ResponseCode.MESSAGE_ILLEGAL
    assert pull(peer).ext_fields["nextBeginOffset"] == "2"


def test_changes_are_written_to_the_file_of_the_start(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("# ours\nbrokerName=b\nlongPollingEnable=true\n")
    broker = BrokerInMemory(broker_config_path=str(path))
    assert update(broker, "longPollingEnable=false\nslaveReadEnable=true\n").code == 0
    assert path.read_text() == "# ours\nbrokerName=b\nlongPollingEnable=false\nslaveReadEnable=true\n"
    assert update(broker, "longPollingEnable=true\nbrokerName=c\n").code == ResponseCode.NO_PERMISSION
    assert "brokerName=b\nlongPollingEnable=false" in path.read_text()


def test_a_file_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    broker = BrokerInMemory(broker_config_path=str(tmp_path / "file" / "broker.conf"))
    answer = update(broker, "longPollingEnable=false\n")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark is not None and answer.remark.startswith("settings not written: ")
    assert broker.options.long_polling_enable is True


def test_secrets_are_not_shown() -> None:
    @attrs.define
    class Settings:
        name: str = option("a", "shown")
        password: str = option("b", "not shown", secret=True)

    assert options_text(Settings()) == "name=a\n"


def test_what_sounds_like_a_secret_is_declared_as_one() -> None:
    words = ("password", "secret", "accesskey", "credential", "token")
    fields = {key: field for key, field in option_fields(BrokerOptions).items() if any(w in key.lower() for w in words)}
    assert [key for key, field in fields.items() if not field.metadata["secret"]] == []


def test_keys_that_decide_paths_and_identity_are_not_on_the_allow_list() -> None:
    allowed = {key for key, field in option_fields(BrokerOptions).items() if field.metadata["remote"]}
    assert not [key for key in allowed if "path" in key.lower() or key in ("brokerName", "brokerId", "namesrvAddr")]
    assert all(option_fields(BrokerOptions)[key].metadata["has_effect"] for key in allowed)
