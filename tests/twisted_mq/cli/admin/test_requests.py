"""Subcommands whose requests a plain broker refuses, or that need two: which requests go where, and what is printed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from twisted.internet import defer

from tests.twisted_mq.cli.admin.recorded import run
from twisted_mq.cli.admin.command_line import UsageError
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import (
    AclInfo,
    BrokerData,
    ClusterInfo,
    PolicyEntryInfo,
    PolicyInfo,
    UserInfo,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.wire.command import RemotingCommand

CLUSTER = ClusterInfo(
    broker_addr_table={"broker-a": BrokerData("C", "broker-a", {0: "m:1", 1: "s:2"})},
    cluster_addr_table={"C": ["broker-a"]},
)
ALICE = UserInfo("alice", "secret", "Normal", "enable")
RULES = AclInfo("User:alice", [PolicyInfo("Custom", [PolicyEntryInfo("Topic:T", ["Pub", "Sub"], None, "Allow")])])


class Peers:
    """Answers by code: a body, or a function of the address; what was asked is kept."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {RequestCode.GET_BROKER_CLUSTER_INFO: encode_body(CLUSTER)}
        self.answers |= {RequestCode[name]: answer for name, answer in answers.items()}
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    def invoke(self, address: str, command: RemotingCommand, timeout_seconds: float) -> defer.Deferred[RemotingCommand]:
        code = RequestCode(command.code)
        if code is not RequestCode.GET_BROKER_CLUSTER_INFO:
            self.asked.append((address, code.name, dict(command.ext_fields), command.body))
        body = self.answers.get(code, b"")
        return defer.succeed(RemotingCommand(code=0, body=body(address) if callable(body) else body))


def asked_of(line: str, **answers: Any) -> tuple[list[tuple[str, str, dict[str, str], bytes]], list[str]]:
    peers = Peers(**answers)
    lines, _ = run(peers, line)
    return peers.asked, lines


@pytest.mark.parametrize(
    ("line", "code", "fields", "body", "printed"),
    [
        (
            "createUser -c C -u alice -p secret -t Normal",
            "AUTH_CREATE_USER",
            {"username": "alice"},
            {"username": "alice", "password": "secret", "userType": "Normal"},
            "create user to {} success.",
        ),
        (
            "updateUser -c C -u alice -s disable",
            "AUTH_UPDATE_USER",
            {"username": "alice"},
            {"username": "alice", "userStatus": "disable"},
            "update user to {} success.",
        ),
        ("deleteUser -c C -u alice", "AUTH_DELETE_USER", {"username": "alice"}, None, "delete user to {} success."),
        (
            "createAcl -c C -s User:alice -r Topic:T,Group:* -a Pub,Sub -d Allow -i 10.0.0.1",
            "AUTH_CREATE_ACL",
            {"subject": "User:alice"},
            {
                "subject": "User:alice",
                "policies": [
                    {
                        "entries": [
                            {
                                "resource": name,
                                "actions": ["Pub", "Sub"],
                                "sourceIps": ["10.0.0.1"],
                                "decision": "Allow",
                            }
                            for name in ("Topic:T", "Group:*")
                        ]
                    }
                ],
            },
            "create acl to {} success.",
        ),
        (
            "updateAcl -c C -s User:alice -r Topic:T -a All -d Deny",
            "AUTH_UPDATE_ACL",
            {"subject": "User:alice"},
            {
                "subject": "User:alice",
                "policies": [{"entries": [{"resource": "Topic:T", "actions": ["All"], "decision": "Deny"}]}],
            },
            "update acl to {} success.",
        ),
        (
            "deleteAcl -c C -s User:alice -r Topic:T",
            "AUTH_DELETE_ACL",
            {"subject": "User:alice", "resource": "Topic:T"},
            None,
            "delete acl to {} success.",
        ),
    ],
)
def test_accounts_and_rules_change_at_all_brokers_of_a_cluster(line, code, fields, body, printed):
    asked, lines = asked_of(line)
    found = [(address, name, sent, json.loads(data) if data else None) for address, name, sent, data in asked]
    assert sorted(found, key=str) == [(address, code, fields, body) for address in ("m:1", "s:2")]
    assert sorted(lines) == [printed.format(address) for address in ("m:1", "s:2")]


def test_an_account_is_shown_as_a_table():
    for line in ("getUser -b m:1 -u alice", "getUser -c C -u alice"):
        _, lines = asked_of(line, AUTH_GET_USER=encode_body(ALICE))
        assert lines == [
            "#UserName         #Password               #UserType               #UserStatus           ",
            "alice             secret                  Normal                  enable                ",
        ]


def test_accounts_of_a_cluster_name_the_broker_that_told_them():
    asked, lines = asked_of("listUser -c C -f ali", AUTH_LIST_USER=encode_body([ALICE]))
    assert [(address, fields) for address, _, fields, _ in asked] == [("m:1", {"filter": "ali"})]
    assert [line.split()[0] for line in lines] == ["#UserName", "alice", "get"]


def test_an_account_that_is_not_there_prints_nothing():
    assert asked_of("getUser -b m:1 -u nobody")[1] == [""]
    assert asked_of("listUser -b m:1")[1] == [""]


def test_rules_are_shown_a_row_an_entry():
    for line, body in (("getAcl -b m:1 -s User:alice", RULES), ("listAcl -b m:1", [RULES])):
        _, lines = asked_of(line, AUTH_GET_ACL=encode_body(body), AUTH_LIST_ACL=encode_body(body))
        assert [" ".join(row.split()) for row in lines] == [
            "#Subject #PolicyType #Resource #Actions #SourceIp #Decision",
            "User:alice Custom Topic:T [Pub, Sub] null Allow",
        ]


def test_accounts_are_copied_new_ones_made_and_others_changed():
    there = {"from:1": encode_body(ALICE), "to:2": b""}
    asked, lines = asked_of("copyUser -f from:1 -t to:2 -u alice", AUTH_GET_USER=there.__getitem__)
    assert [(address, name) for address, name, *_ in asked][-1] == ("to:2", "AUTH_CREATE_USER")
    assert lines == ["copy user of alice from from:1 to to:2 success."]
    asked, _ = asked_of(
        "copyUser -f from:1 -t to:2", AUTH_LIST_USER=encode_body([ALICE]), AUTH_GET_USER=encode_body(ALICE)
    )
    assert [(address, name) for address, name, *_ in asked][-1] == ("to:2", "AUTH_UPDATE_USER")


def test_rules_are_copied_new_ones_made_and_others_changed():
    there = {"from:1": encode_body(RULES), "to:2": b""}
    asked, lines = asked_of("copyAcl -f from:1 -t to:2 -s User:alice", AUTH_GET_ACL=there.__getitem__)
    assert (asked[-1][:2], json.loads(asked[-1][3])) == (("to:2", "AUTH_CREATE_ACL"), json.loads(encode_body(RULES)))
    assert lines == ["copy acl of User:alice from from:1 to to:2 success."]
    asked, _ = asked_of(
        "copyAcl -f from:1 -t to:2", AUTH_LIST_ACL=encode_body([RULES]), AUTH_GET_ACL=encode_body(RULES)
    )
    assert [(address, name) for address, name, *_ in asked][-1] == ("to:2", "AUTH_UPDATE_ACL")


def test_cold_data_flow_is_shown_with_readable_times(monkeypatch):
    monkeypatch.setattr("twisted_mq.cli.admin.cold_data.date_text", lambda ms: f"at {ms}")
    table = {"audit": {"coldAcc": 5, "lastColdReadTimeMills": 1, "createTimeMills": "2"}}
    body = json.dumps({"runtimeTable": table, "configTable": {}}).encode()
    _, lines = asked_of("getColdDataFlowCtrInfo -b m:1", GET_COLD_DATA_FLOW_CTR_INFO=body)
    assert lines[0] == " ============m:1============"
    assert json.loads("".join(lines[1:])) == {
        "runtimeTable": {"audit": {"coldAcc": 5, "lastColdReadTimeFormat": "at 1", "createTimeFormat": "at 2"}},
        "configTable": {},
    }
    assert asked_of("getColdDataFlowCtrInfo -c C")[1] == [
        " ============Master: m:1============",
        "Broker[m:1] has no cold ctr table !",
        " ============My Master: m:1=====Slave: s:2============",
        "Broker[s:2] has no cold ctr table !",
    ]


def test_cold_data_flow_is_limited_by_group():
    asked, lines = asked_of("updateColdDataFlowCtrGroupConfig -c C -g audit -v 1000")
    assert asked == [("m:1", "UPDATE_COLD_DATA_FLOW_CTR_CONFIG", {}, b"audit=1000\n")]
    assert lines == ["updateColdDataFlowCtrGroupConfig success, m:1"]
    asked, lines = asked_of("removeColdDataFlowCtrGroupConfig -b m:1 -g audit")
    assert asked == [("m:1", "REMOVE_COLD_DATA_FLOW_CTR_CONFIG", {}, b"audit")]
    assert lines == ["remove broker cold read threshold success, m:1"]


def test_reading_ahead_is_switched():
    asked, lines = asked_of("setCommitLogReadAheadMode -b m:1 -m 1")
    assert asked == [("m:1", "SET_COMMITLOG_READ_MODE", {"READ_AHEAD_MODE": "1"}, b"")]
    assert lines == [" ============m:1============", "commitLog set readAhead mode rstStrnull"]
    with pytest.raises(UsageError, match="0 is default, 1 random read"):
        asked_of("setCommitLogReadAheadMode -b m:1 -m 2")


def test_a_slave_is_told_how_far_its_master_is():
    asked, lines = asked_of("resetMasterFlushOffset -b s:2 -o 77")
    assert asked == [("s:2", "RESET_MASTER_FLUSH_OFFSET", {"masterFlushOffset": "77"}, b"")]
    assert lines == ["reset master flush offset to 77 success"]


def a_record(body: bytes) -> bytes:
    host = pack_host("127.0.0.1", 10911)
    return encode_record(
        topic=b"T", body=body, properties=b"KEYS\x01k\x02", queue_id=1, queue_offset=3, physical_offset=0, flag=0,
        sys_flag=0, born_timestamp=1, born_host=host, store_timestamp=2, store_host=host, reconsume_times=0,
        prepared_transaction_offset=0,
    )  # fmt: skip


def test_a_compaction_log_is_dumped_until_its_empty_rest(tmp_path):
    path = tmp_path / "compaction"
    path.write_bytes(a_record(b"one") + a_record(b"two") + bytes(64))
    _, lines = asked_of(f"dumpCompactionLog -f {path}")
    assert [line.partition("body=")[2].partition(",")[0] for line in lines] == ["[111", "[116"]
    assert lines[0].startswith("MessageExt [brokerName=null, queueId=1, storeSize=")


def test_a_damaged_compaction_log_names_the_place(tmp_path):
    path, first = tmp_path / "compaction", a_record(b"one")
    path.write_bytes(first + (64).to_bytes(4, "big") + bytes(60))
    with pytest.raises(CliError, match=f"no message at {len(first)}: "):
        asked_of(f"dumpCompactionLog -f {path}")
    with pytest.raises(CliError, match="No such file"):
        asked_of(f"dumpCompactionLog -f {path}.not")
    with pytest.raises(UsageError, match="miss dump log file name"):
        asked_of("dumpCompactionLog")
