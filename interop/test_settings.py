"""Settings that both kinds of servers show: the same keys, and the same values in effect."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

import pytest

from interop.peers.servers import COMMANDS, Cluster, ask, running
from interop.recorded import Recording
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processors.admin_config import FIXED
from twisted_mq.config.options import option_fields
from twisted_mq.namesrv.options import NamesrvOptions

GET_BROKER_CONFIG, GET_NAMESRV_CONFIG = 26, 319
RECORDED = Recording.named("settings")


def declared_keys(options: type) -> set[str]:
    """Keys of the settings that have an effect and are no secrets."""
    fields = option_fields(options).items()
    return {key for key, field in fields if field.metadata["has_effect"] and not field.metadata["secret"]}


OURS = {
    "broker": {*declared_keys(BrokerOptions), *FIXED},
    "name server": declared_keys(NamesrvOptions),
}
"""Keys that this project's servers show."""

GREPPED = {
    "brokerName", "brokerClusterName", "brokerId", "brokerRole", "brokerIP1", "brokerIP2", "listenPort", "haListenPort",
    "namesrvAddr", "fileReservedTime", "deleteWhen", "flushDiskType", "storePathRootDir", "storePathCommitLog",
    "mappedFileSizeCommitLog", "maxMessageSize", "autoCreateTopicEnable", "autoCreateSubscriptionGroup",
    "defaultTopicQueueNums", "brokerPermission", "messageDelayLevel", "enablePropertyFilter", "diskMaxUsedSpaceRatio",
    "aclEnable", "traceTopicEnable", "transactionTimeOut", "transactionCheckMax", "slaveReadEnable", "forceRegister",
}  # fmt: skip
"""Keys that scripts look for; a broker of either kind shows them."""

OF_EACH_RUN = {
    "listenPort", "haListenPort", "namesrvAddr", "storePathRootDir", "storePathCommitLog", "brokerConfigPath",
    "configStorePath", "kvConfigPath", "messageIndexSafe", "rocketmqHome",
}  # fmt: skip
"""Ports and paths; and the index, which here is always made whole after a crash."""


def shown(port: int, code: int) -> dict[str, str]:
    answer = ask(port, code)
    header_bytes = int.from_bytes(answer[:4], "big") & 0xFFFFFF
    assert json.loads(answer[4 : 4 + header_bytes])["code"] == 0
    return dict(line.split("=", 1) for line in answer[4 + header_bytes :].decode().splitlines() if "=" in line)


def shared_keys(shown_by_ours: Collection[str], shown_by_apaches: Collection[str]) -> list[str]:
    return sorted(set(shown_by_ours) & set(shown_by_apaches) - OF_EACH_RUN)


@pytest.fixture(scope="module", params=list(COMMANDS))
def fresh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Servers whose settings no other test has changed."""
    with running(Cluster(request.param, tmp_path_factory.mktemp(request.param))) as servers:
        yield servers


@pytest.mark.peer
@pytest.mark.parametrize("server", ["broker", "name server"])
def test_settings_are_apaches(fresh: Cluster, server: str) -> None:
    of_broker = server == "broker"
    asked = (fresh.broker_port, GET_BROKER_CONFIG) if of_broker else (fresh.name_server_port, GET_NAMESRV_CONFIG)
    settings = shown(*asked)
    keys = RECORDED.apaches(f"keys of the {server}", sorted(settings), fresh.kind)
    compared = shared_keys(OURS[server], keys)
    values = {key: settings[key] for key in compared}
    assert values == RECORDED.apaches(f"values of the {server}", values, fresh.kind)
    assert fresh.kind == "apache" or shared_keys(settings, keys) == compared
    assert not of_broker or settings.keys() >= GREPPED


def test_the_recording_has_every_setting_that_both_show() -> None:
    assert RECORDED.questions() == {f"{what} of the {server}" for what in ("keys", "values") for server in OURS}
    for server, ours in OURS.items():
        keys = RECORDED.apaches(f"keys of the {server}", None, "ours")
        assert list(RECORDED.apaches(f"values of the {server}", None, "ours")) == shared_keys(ours, keys)
    assert set(RECORDED.apaches("keys of the broker", None, "ours")) >= FIXED.keys()
