"""Keys that promise safety and are not served refuse the start."""

from __future__ import annotations

import pytest
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.known_keys import known_keys
from twisted_mq.config.options import load_options, option_fields
from twisted_mq.config.unserved import PROMISES, TLS_SETTINGS
from twisted_mq.namesrv.options import NamesrvOptions

ON = [
    "enableDLegerCommitLog=true",
    "enableControllerMode=true",
    "enableControllerInNamesrv=true",
    "lockInStrictMode=true",
    "allAckInSyncStateSet=true",
    "duplicationEnable=true",
    "storeType=defaultRocksDB",
    "configManagerVersion=v2",
    "readOnlyCommitLogStorePaths=/a,/b",
    "messageStorePlugIn=org.apache.rocketmq.tieredstore.TieredMessageStore",
    "forceVerifyPropCRC=true",
    "storePathCommitLog=/data1/commitlog,/data2/commitlog",
]
OFF = [
    "storeType=default",
    "configManagerVersion=v1",
    "messageStorePlugIn=",
]


def file_of(tmp_path, *lines):
    path = tmp_path / "broker.conf"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize("line", ON)
@pytest.mark.parametrize("cls", [BrokerOptions, NamesrvOptions])
def test_promise_that_is_on_refuses_the_start_and_says_what_to_do(tmp_path, cls, line):
    path = file_of(tmp_path, "# mine", line)
    with pytest.raises(ConfigError) as caught:
        load_options(cls, path)
    said = str(caught.value)
    assert said.startswith(f"{path} line 2: {line}: is not supported here: ")
    assert "Remove it and " in said and said.endswith(", or start with --ignore-unsupported")


@pytest.mark.parametrize("line", ON)
def test_promise_that_is_ignored_on_purpose_is_one_warning(tmp_path, line):
    with capturedLogs() as events:
        load_options(BrokerOptions, file_of(tmp_path, line), ignore_unsupported=True)
    warnings = [formatEvent(one) for one in events if one["log_level"].name == "warn"]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{line} is ignored: ")


@pytest.mark.parametrize("line", OFF)
def test_promise_that_is_off_is_a_key_without_effect(tmp_path, line):
    path = file_of(tmp_path, line)
    with capturedLogs() as events:
        load_options(BrokerOptions, path)
    (told,) = map(formatEvent, events)
    assert told.startswith(f"{path} line 1: {line.partition('=')[0]}: no effect here: ")


def test_all_that_are_on_are_named_and_the_last_value_of_a_key_counts(tmp_path):
    path = file_of(
        tmp_path,
        "duplicationEnable=true",
        "enableControllerMode=true",
        "storeType=defaultRocksDB",
        "enableControllerMode=false",
    )
    with pytest.raises(ConfigError) as caught:
        load_options(BrokerOptions, path)
    assert str(caught.value).startswith(f"{path} line 1: duplicationEnable=true: is not supported here: ")
    assert str(caught.value).endswith("; nor are storeType=defaultRocksDB")
    load_options(BrokerOptions, path, {"duplicationEnable": "false", "storeType": "default"})


def test_promise_is_refused_before_other_findings_of_a_strict_start(tmp_path):
    path = file_of(tmp_path, "brokerNam=a", "duplicationEnable=true")
    with pytest.raises(ConfigError, match="duplicationEnable=true: is not supported here"):
        load_options(BrokerOptions, path, strict=True)
    with pytest.raises(ConfigError, match="brokerNam=a: unknown key"):
        load_options(BrokerOptions, path, strict=True, ignore_unsupported=True)


def test_misspelled_tls_setting_is_unknown(tmp_path):
    path = file_of(tmp_path, "tls.servr.mode=enforcing")
    with capturedLogs() as events:
        load_options(BrokerOptions, path)
    assert [formatEvent(one) for one in events] == [
        f"{path} line 1: tls.servr.mode: unknown key, did you mean tls.server.mode?"
    ]


def test_promises_are_keys_of_apaches_and_none_is_served():
    """A key that is served from now on leaves the table."""
    assert set(PROMISES) - TLS_SETTINGS <= known_keys().keys()
    for cls in (BrokerOptions, NamesrvOptions):
        served = {key for key, field in option_fields(cls).items() if field.metadata["has_effect"]}
        assert not served & {key for key, promise in PROMISES.items() if not promise.mark}
