"""brokerStatus: the broker's figures by name, and a row for each slave of whichever broker."""

from __future__ import annotations

import pytest

from tests.twisted_mq.cli.admin.recorded import RecordedPeers, run
from twisted_mq.protocol.bodies import (
    BrokerData,
    ClusterInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
    KVTable,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand

COMMAND = "brokerStatus -b 127.0.0.2:20911"
SLAVE = HAConnectionRuntimeInfo("127.0.0.1:50001", 4000, 1000, True, 3072, 5000)
ROW = (
    "haSlave_127.0.0.1:50001         : ackOffset : 4000, diff : 1000, transferredByteInSecond : 3072,"
    " transferFromWhere : 5000, inSync : true"
)


def asked(code: RequestCode, body: bytes = b"", answer_code: int = 0) -> tuple[RemotingCommand, RemotingCommand]:
    request = RemotingCommand.request(code, {})
    return request, request.answer(code=answer_code, body=body)


def apaches(code: int = 0, info: HARuntimeInfo | None = None) -> RecordedPeers:
    """Apache's broker, with an answer about its slaves."""
    table = encode_body(KVTable(table={"putTps": "1.0 1.0 1.0", "bootTimestamp": "1795217217000"}))
    status = asked(RequestCode.GET_BROKER_HA_STATUS, encode_body(info or HARuntimeInfo()), code)
    return RecordedPeers([asked(RequestCode.GET_BROKER_RUNTIME_INFO, table), status])


@pytest.mark.parametrize("code", [0, 1], ids=["no slaves", "refused"])
def test_figures_stand_in_order(code: int) -> None:
    expected = [f"{'bootTimestamp':<32}: 1795217217000", f"{'putTps':<32}: 1.0 1.0 1.0"]
    assert run(apaches(code), COMMAND) == (expected, [])


def test_all_brokers_of_a_cluster_are_asked_slaves_too() -> None:
    brokers = BrokerData("c", "a", {0: "127.0.0.1:10911", 1: "127.0.0.1:20911"})
    cluster = encode_body(ClusterInfo(broker_addr_table={"a": brokers}, cluster_addr_table={"c": ["a"]}))
    peers = RecordedPeers(
        [
            asked(RequestCode.GET_BROKER_CLUSTER_INFO, cluster),
            asked(RequestCode.GET_BROKER_RUNTIME_INFO, encode_body(KVTable(table={"a": "1"}))),
            asked(RequestCode.GET_BROKER_HA_STATUS, encode_body(HARuntimeInfo())),
        ]
    )
    printed, _ = run(peers, "brokerStatus -c c")
    assert sorted(printed) == [f"127.0.0.1:{port}          {'a':<32}: 1" for port in (10911, 20911)]


def test_slaves_of_apaches_broker_are_asked_for() -> None:
    printed, _ = run(apaches(0, HARuntimeInfo(master=True, ha_connection_info=[SLAVE])), COMMAND)
    assert [line for line in printed if "Slave" in line] == [ROW]


def test_slaves_of_our_broker_are_in_its_table() -> None:
    key, _, value = ROW.partition(" ")
    table = KVTable(table={key: value.strip().removeprefix(": "), "a": "1"})
    peers = RecordedPeers([asked(RequestCode.GET_BROKER_RUNTIME_INFO, encode_body(table))])
    assert run(peers, COMMAND)[0] == [f"{'a':<32}: 1", ROW]
