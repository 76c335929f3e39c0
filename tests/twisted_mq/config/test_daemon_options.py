"""The two daemons' options against the table of Apache's defaults."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from twisted_mq.broker.options import BrokerOptions, BrokerRole
from twisted_mq.broker.store_options import store_config
from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.config.known_keys import known_keys, startup_defaults
from twisted_mq.config.metrics_options import MetricsOptions
from twisted_mq.config.options import option_fields, read_options
from twisted_mq.config.properties import parse_properties
from twisted_mq.config.tls_options import TlsOptions
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.storage.config import FlushDiskType

BROKER_CLASSES = {"BrokerConfig", "MessageStoreConfig", "NettyServerConfig", "NettyClientConfig", "AuthConfig"}
NAMESRV_CLASSES = {"NamesrvConfig", "NettyServerConfig", "NettyClientConfig"}
DAEMONS = [(BrokerOptions, BROKER_CLASSES, "broker"), (NamesrvOptions, NAMESRV_CLASSES, "namesrv")]
OURS = {
    *option_fields(ConnectionOptions),
    *(key for key in option_fields(TlsOptions) if key.startswith("tls.")),
    "grpcServerPort",
    "haTls",
    "logFormat",
    "haAllowedSlaves",
    "haOpenUnderAccessControl",
    "producerGroupRightsEnable",
    "recordRightsEnable",
    "replyToAnyTopicEnable",
    "signedFieldsStrict",
    "transactionMembersOnly",
    "haCountRegisteredSlavesOnly",
    "haSharedSecret",
    "orderCoordinator",
    "proxyConfigPath",
    "orderCoordinatorAuth",
    "orderCoordinatorCaFile",
    "orderCoordinatorCertFile",
    "orderCoordinatorKeyFile",
    "orderSessionTimeoutMillis",
    "registrationSharedSecret",
    "rebalanceLockMaxLiveTime",
    "popFromRetryProbabilityForPriority",
    "priorityOrderAsc",
    "rocketmq.namesrv.domain",
    "rocketmq.namesrv.domain.subgroup",
}
"""Keys that Apache's brokers of 5.3.3 do not have, or have as system properties; 5.4 has those of priorities."""
OF_BROKERS_ALONE = {*option_fields(MetricsOptions), "authConfigPath"}
"""Apache's name servers have no access control and no metrics."""
FIELDS = [
    pytest.param(cls, classes, daemon, key, id=f"{daemon}-{key}")
    for cls, classes, daemon in DAEMONS
    for key in option_fields(cls)
    if key not in OURS and not (daemon == "namesrv" and key in OF_BROKERS_ALONE)
]


@pytest.mark.parametrize(("cls", "classes", "daemon", "key"), FIELDS)
def test_field_has_apaches_type_and_default(cls, classes, daemon, key):
    forms = [one for one in known_keys()[key] if classes & set(one.classes)]
    field = option_fields(cls)[key]
    kind = field.metadata["type"]
    assert (kind if isinstance(kind, str) else "string") in {one.type for one in forms}
    if isinstance(field.default, attrs.Factory):
        assert forms[0].environment is not None
    elif field.default is None:
        assert {one.default for one in forms} == {None}
    elif key in startup_defaults(daemon):
        assert field.default == startup_defaults(daemon)[key]
    else:
        assert field.default in [one.default for one in forms]


@pytest.mark.parametrize(("cls", "classes", "daemon", "key"), FIELDS)
def test_field_is_documented_in_one_line(cls, classes, daemon, key):
    doc = option_fields(cls)[key].metadata["doc"]
    assert doc and "\n" not in doc and not doc.endswith(".")


def test_defaults_of_the_machine(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("NAMESRV_ADDR", "ns1:9876; ns2:9876;")
    options = BrokerOptions()
    assert options.store_path_root_dir == "/home/someone/store"
    assert options.commit_log_path == "/home/someone/store/commitlog"
    assert options.name_servers == ["ns1:9876", "ns2:9876"]
    assert options.broker_name == os.uname().nodename
    assert NamesrvOptions().kv_config_path == "/home/someone/namesrv/kvConfig.json"
    monkeypatch.delenv("NAMESRV_ADDR")
    assert BrokerOptions().name_servers == []


SHIPPED = {
    "broker.conf": b"""
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
""",
    "dledger": b"""
listenPort=30911
namesrvAddr=127.0.0.1:9876
storePathRootDir=/tmp/rmqstore/node00
storePathCommitLog=/tmp/rmqstore/node00/commitlog
enableDLegerCommitLog=true
dLegerGroup=RaftNode00
dLegerPeers=n0-127.0.0.1:40911;n1-127.0.0.1:40912;n2-127.0.0.1:40913
dLegerSelfId=n0
sendMessageThreadPoolNums=16
""",
    "controller": b"brokerId = -1\nbrokerRole = SLAVE\nenableControllerMode = true\ncontrollerAddr = 127.0.0.1:9878\n",
}
"""Settings of the files that come with Apache's distribution."""


UNUSED_OF_SHIPPED = [
    key
    for key in ("deleteWhen", "fileReservedTime", "brokerRole")
    if not option_fields(BrokerOptions)[key].metadata["has_effect"]
]


def test_shipped_broker_file_works_as_it_is():
    options, findings = read_options(BrokerOptions, parse_properties(SHIPPED["broker.conf"]))
    assert [one.entry.key for one in findings] == UNUSED_OF_SHIPPED
    expected = BrokerOptions(
        broker_name="broker-a",
        file_reserved_time=48,
        broker_role=BrokerRole.ASYNC_MASTER,
        flush_disk_type=FlushDiskType.ASYNC_FLUSH,
    )
    assert options == expected


def test_shipped_cluster_files_name_what_has_no_effect():
    assert [one.entry.key for one in read_options(BrokerOptions, parse_properties(SHIPPED["dledger"]))[1]] == [
        "enableDLegerCommitLog",
        "dLegerGroup",
        "dLegerPeers",
        "dLegerSelfId",
        "sendMessageThreadPoolNums",
    ]
    options, findings = read_options(BrokerOptions, parse_properties(SHIPPED["controller"]))
    assert (options.broker_id, options.broker_role) == (-1, BrokerRole.SLAVE)
    assert [one.entry.key for one in findings][-2:] == ["enableControllerMode", "controllerAddr"]


def test_refused_keys_of_the_name_server_hold_whatever_the_list_says():
    assert NamesrvOptions(config_black_list="").refused_keys == {
        "configBlackList",
        "configStorePath",
        "kvConfigPath",
        "rocketmqHome",
    }
    assert "waitSecondsForService" in NamesrvOptions(config_black_list="waitSecondsForService").refused_keys


def test_queue_file_size_is_rounded_up_to_whole_entries():
    options, _ = read_options(BrokerOptions, parse_properties(b"mappedFileSizeConsumeQueue=401\n"))
    assert options.mapped_file_size_consume_queue == 420


SOURCES = Path(__file__).parents[3] / "twisted_mq"


def read_by_the_store() -> set[str]:
    """Names of the options that the store's configuration is made from."""
    names = set[str]()

    class Noting:
        def __getattr__(self, name: str) -> Any:
            value = getattr(options, name)
            names.add(name)
            return value

    options = BrokerOptions()
    store_config(Noting(), b"")
    return names


@pytest.mark.parametrize("cls", [BrokerOptions, NamesrvOptions])
def test_field_has_an_effect_exactly_where_some_module_reads_it(cls):
    """Otherwise a setting would be taken without a word and do nothing, or be called unused while it is not."""
    own = Path(inspect.getfile(cls))
    others = "".join(path.read_text() for path in SOURCES.rglob("*.py") if path.name != "options.py")
    taken_by_name = read_by_the_store() if cls is BrokerOptions else set()
    found = []
    for key, field in option_fields(cls).items():
        is_read = re.search(rf"\.{field.name}\b", others) or f"self.{field.name}" in own.read_text()
        is_read = is_read or field.name in taken_by_name
        if bool(is_read) != field.metadata["has_effect"]:
            found.append(f"{key}: is read {bool(is_read)}, has_effect {field.metadata['has_effect']}")
    assert found == []
