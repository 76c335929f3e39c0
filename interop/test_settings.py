"""Settings that both kinds of servers show: the same keys, and the same values in effect."""

from __future__ import annotations

import json

import pytest

from interop.peers.servers import Cluster, ask
from twisted_mq.broker.shown_settings import FIXED

GET_BROKER_CONFIG, GET_NAMESRV_CONFIG = 26, 319
OF_APACHE: dict[int, dict[str, str]] = {}
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
    "configStorePath", "kvConfigPath", "messageIndexSafe",
}  # fmt: skip
"""Ports and paths; and the index, which here is always made whole after a crash."""


def shown(port: int, code: int) -> dict[str, str]:
    answer = ask(port, code)
    header_bytes = int.from_bytes(answer[:4], "big") & 0xFFFFFF
    assert json.loads(answer[4 : 4 + header_bytes])["code"] == 0
    return dict(line.split("=", 1) for line in answer[4 + header_bytes :].decode().splitlines() if "=" in line)


@pytest.mark.peer
@pytest.mark.parametrize("code", [GET_BROKER_CONFIG, GET_NAMESRV_CONFIG])
def test_settings_are_apaches(cluster: Cluster, code: int) -> None:
    settings = shown(cluster.broker_port if code == GET_BROKER_CONFIG else cluster.name_server_port, code)
    if code == GET_BROKER_CONFIG:
        assert settings.keys() >= GREPPED
    if cluster.kind == "apache":
        OF_APACHE[code] = settings
        assert code != GET_BROKER_CONFIG or settings.keys() >= FIXED.keys()
    apaches = OF_APACHE.get(code, settings)
    compared = settings.keys() & apaches.keys() - OF_EACH_RUN
    assert len(compared) > 10
    assert {key: settings[key] for key in compared} == {key: apaches[key] for key in compared}
