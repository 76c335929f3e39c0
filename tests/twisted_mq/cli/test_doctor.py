"""`mq doctor`: what its checks make of figures, files and a cluster that runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from twisted_mq.cli.doctor.checks import CheckOutcome, Result
from twisted_mq.cli.doctor.cluster import check_cluster
from twisted_mq.cli.doctor.figures import clock, disk, replication, safety
from twisted_mq.cli.doctor.machine import check_config, check_store
from twisted_mq.protocol.bodies import BrokerData, ClusterInfo, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.testing import EmbeddedServer

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]
BOOT_MS = 1_795_000_000_000
FIGURES = {"bootTimestamp": str(BOOT_MS), "runtime": "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"}
UPTIME_MS = (((24 + 2) * 60 + 3) * 60 + 4) * 1000


@pytest.mark.parametrize(
    ("apart_ms", "result"),
    [(0, Result.OK), (-4_999, Result.OK), (5_000, Result.WARNING), (-60_000, Result.PROBLEM)],
)
def test_clock_by_start_and_uptime(apart_ms: int, result: Result) -> None:
    found = clock("b", FIGURES, BOOT_MS + UPTIME_MS - apart_ms)
    assert (found.result, found.found) == (result, f"{apart_ms / 1000:+.0f} s from here")
    assert bool(found.remedy) == (result is not Result.OK)


def test_clock_of_a_broker_that_does_not_say() -> None:
    assert clock("b", {}, 1).result is Result.UNKNOWN


@pytest.mark.parametrize(
    ("used", "settings", "result"),
    [
        ("0.5", {}, Result.OK),
        ("0.8", {}, Result.WARNING),
        ("0.8", {"diskMaxUsedSpaceRatio": "85"}, Result.OK),
        ("0.95", {}, Result.PROBLEM),
        ("NaN?", {}, Result.UNKNOWN),
    ],
)
def test_disk_by_what_the_broker_does_about_it(used: str, settings: dict[str, str], result: Result) -> None:
    assert disk("b", {"commitLogDiskRatio": used}, settings).result is result


def results(checks: object) -> list[tuple[str, Result]]:
    return [(check.check, check.result) for check in checks]  # type: ignore[attr-defined]


def test_safety() -> None:
    assert results(safety("b", {"bindAddress": "127.0.0.1"})) == [("safety", Result.OK)]
    assert results(safety("b", {"bindAddress": "0.0.0.0"})) == [("safety", Result.WARNING)]
    asks = {"bindAddress": "0.0.0.0", "authenticationEnabled": "true"}
    assert results(safety("b", asks)) == [("safety", Result.OK), ("encryption", Result.WARNING)]
    assert results(safety("b", {**asks, "tls.server.mode": "enforcing"}))[1] == ("encryption", Result.OK)
    assert results(safety("b", {})) == [("safety", Result.UNKNOWN)]


def test_replication_of_a_master_that_waits() -> None:
    waits = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}
    assert results(replication("b", waits, 0)) == [("replication", Result.PROBLEM)]
    assert results(replication("b", waits, 1)) == [("replication", Result.OK)]
    assert results(replication("b", {"brokerRole": "SYNC_MASTER"}, 0)) == [("replication", Result.WARNING)]
    assert results(replication("b", {"brokerRole": "ASYNC_MASTER"}, 0)) == []


def test_configuration_of_a_master_that_any_slave_may_join(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    asks = 'authenticationEnabled=true\ninitAuthenticationUser={"username":"r","password":"s"}\n'
    path.write_text(f"brokerRole=SYNC_MASTER\nstorePathRootDir={tmp_path}/none\n{asks}")
    (found,) = check_config(str(path))
    assert found.result is Result.WARNING and "haSharedSecret" in found.remedy
    path.write_text(
        f"brokerRole=SYNC_MASTER\nhaSharedSecret=x\nbindAddress=127.0.0.1\nstorePathRootDir={tmp_path}/no\n"
    )
    assert [check.result for check in check_config(str(path))] == [Result.OK]
    path.write_text("listenPort=ten\n")
    (found,) = check_config(str(path))
    assert found.result is Result.PROBLEM and "line 1: listenPort=ten" in found.found


def test_files_of_a_store_that_others_can_read(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    for name in ("topics.json", "access.json"):
        (tmp_path / "config" / name).write_text("{}")
        os.chmod(tmp_path / "config" / name, 0o600)
    assert permissions(tmp_path).result is Result.OK
    os.chmod(tmp_path / "config" / "topics.json", 0o644)
    assert permissions(tmp_path).result is Result.WARNING
    os.chmod(tmp_path / "config" / "access.json", 0o640)
    found = permissions(tmp_path)
    assert found.result is Result.PROBLEM and found.remedy == f"chmod 600 {tmp_path}/config/access.json"


def permissions(store: Path) -> CheckOutcome:
    return next(check for check in check_store(str(store)) if check.check == "permissions")


def test_a_store_whose_broker_was_killed(tmp_path: Path) -> None:
    (tmp_path / "abort").write_text("1")
    assert next(iter(check_store(str(tmp_path)))).result is Result.WARNING


def run(*words: str, namesrv: str) -> tuple[int, list[dict[str, str]]]:
    environment = {**os.environ, "NAMESRV_ADDR": namesrv}
    done = subprocess.run(
        [*MQ, "doctor", *words, "--json"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_cluster_that_is_well_and_its_store() -> None:
    with EmbeddedServer() as server:
        server.new_topic("Orders")
        code, found = run("--store", server.store_path, namesrv=server.namesrv)
    assert code == 0
    by_name = {one["check"]: one for one in found}
    assert set(by_name) == {
        "connection", "advertised address", "clock", "disk", "safety", "version", "routes", "descriptors", "state",
        "permissions",
    }  # fmt: skip
    assert by_name["clock"]["result"] == "ok"
    assert by_name["routes"]["found"].endswith("take messages")
    assert by_name["state"]["found"] == "a broker runs on it"


def test_a_name_server_that_is_not_there_is_a_problem_with_its_remedy() -> None:
    code, found = run(namesrv="127.0.0.1:1")
    assert (code, [one["result"] for one in found]) == (1, ["problem"])
    assert "mq up" in found[0]["remedy"]


class Refusing:
    """A cluster of one broker that refuses all requests, or does not answer."""

    name_servers = ("10.0.0.1:9876",)

    def __init__(self) -> None:
        self.cluster = ClusterInfo({"a": BrokerData("c", "a", {0: "127.0.0.1:10911"})}, {"c": ["a"]})

    def now_ms(self) -> int:
        return 0

    async def invoke(self, address: str, code: int, *more: object) -> RemotingCommand:
        if code == RequestCode.GET_BROKER_CLUSTER_INFO:
            return RemotingCommand.request(code, {}, encode_body(self.cluster))
        raise BrokerError(ResponseCode.NO_PERMISSION, "no")

    async def broker_runtime(self, address: str) -> dict[str, str]:
        return {"brokerVersionDesc": "V5_3_3"}

    async def topic_list(self) -> list[str]:
        raise BrokerError(ResponseCode.NO_PERMISSION, "no")


def test_what_is_refused_is_a_problem_and_an_address_for_the_machine_alone_too() -> None:
    async def checks() -> list[CheckOutcome]:
        return [check async for check in check_cluster(Refusing())]  # type: ignore[arg-type]

    found: list[list[CheckOutcome]] = []
    Deferred.fromCoroutine(checks()).addCallback(found.append)
    results = {(one.check, one.where.split()[0]): one for one in found[0]}
    assert results["advertised address", "broker"].result is Result.PROBLEM
    assert "brokerIP1" in results["advertised address", "broker"].remedy
    assert results["clock", "broker"].result is Result.UNKNOWN
    assert results["routes", "topics"].result is Result.PROBLEM
    assert "--access-key" in results["routes", "topics"].remedy
    assert results["version", "brokers"].found == "V5_3_3"
