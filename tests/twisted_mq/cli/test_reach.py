"""Commands of `mq` against a broker that asks who one is, over TLS; and what they send, take and measure there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import Authority

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]
SECRET = "planted-77aa"
ACCOUNT = {"accessKey": "root", "secretKey": SECRET}


SERVER = """
import json, sys
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted_mq.config.tls_options import TlsMode
from twisted_mq.testing import EmbeddedCluster

certificate, key, secret = sys.argv[1:]
TLS = {
    "tls_server_mode": TlsMode.ENFORCING, "tls_server_cert_path": certificate, "tls_server_key_path": key,
    "tls_enable": True,
}
ASKS = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": json.dumps({"username": "root", "password": secret}),
    "inner_client_authentication_credentials": json.dumps({"accessKey": "inner", "secretKey": secret + "-inner"}),
}
cluster = EmbeddedCluster(reactor, broker_options={**TLS, **ASKS}, namesrv_options=TLS)
reactor.callWhenRunning(
    lambda: Deferred.fromCoroutine(cluster.start()).addCallback(lambda made: print(made.name_server, flush=True))
)
reactor.addSystemEventTrigger("before", "shutdown", lambda: Deferred.fromCoroutine(cluster.stop()))
reactor.run()
"""
"""A cluster whose broker asks for accounts; both servers take encrypted connections alone."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def namesrv(home: Path) -> Iterator[str]:
    """The name server of a cluster in a process of its own: a thread's reactor serves no TLS."""
    files = Authority(home / "ca").issue("server")
    command = [sys.executable, "-c", SERVER, files.certificate, files.key, SECRET]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        process.wait(60)


def run(home: Path, *words: str, code: int = 0, text: str = "", **more: str) -> str:
    """Return the output of the command, or its standard error after an expected failure."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NAMESRV_", "MQ_", "ROCKETMQ_"))}
    environment = {**kept, "XDG_CONFIG_HOME": str(home), "NO_COLOR": "1", **more}
    done = subprocess.run([*MQ, *words], env=environment, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done.stderr if code else done.stdout


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_commands_reach_servers_that_ask_by_a_context(namesrv: str, home: Path) -> None:
    tls = ("--tls-ca", str(home / "ca" / "authority.pem"))
    account = ("--access-key", "root", "--secret-key", SECRET)
    run(home, "context", "add", "asks", "--namesrv", namesrv, *account, *tls)
    sent = lines(run(home, "send", "Asked", "one", "--queue", "2", "--keys", "k", "--json"))
    assert [(one["status"], one["queueId"], one["queueOffset"]) for one in sent] == [("SEND_OK", 2, 0)]
    line = json.dumps({"body": "two", "tags": "B", "properties": {"size": "L"}})
    run(home, "send", "Asked", "--json-lines", "--queue", "2", text=f"{line}\n{line}\n")
    peeked = lines(run(home, "peek", "Asked", "--json"))
    assert [(one["body"], one["properties"].get("size")) for one in peeked] == [
        ("one", None),
        ("two", "L"),
        ("two", "L"),
    ]
    taken = run(home, "consume", "Asked", "--group", "late", "--from", "1", "--count", "2", "--raw")
    assert taken.split() == ["two", "two"]
    again = run(home, "consume", "Asked", "--group", "late", "--from", "2000-01-01T00:00", "--count", "3", "--raw")
    assert sorted(again.split()) == ["one", "two", "two"]
    assert "Asked" in run(home, "admin", "topicList").split()
    topics = {
        one["topic"]: one
        for one in lines(run(home, "top", "--once", "--interval", "0.1", "--json"))
        if one["kind"] == "topic"
    }
    assert (topics["Asked"]["messages"], topics["Asked"]["lag"]) == (3, 0)
    rows = lines(run(home, "bench", "--count", "200", "--consumers", "1", "--batch", "4", "--json"))
    assert [(row["what"], row["messages"], row["errors"]) for row in rows] == [("sent", 200, 0), ("consumed", 200, 0)]
    assert all(0 < row["p50Ms"] <= row["p99Ms"] <= row["maxMs"] for row in rows)
    checks = lines(run(home, "doctor", "--json"))
    assert {one["result"] for one in checks if one["check"] != "disk"} == {"ok"}  # that is the machine's


def test_without_account_or_authority_the_reason_is_one_line(namesrv: str, home: Path) -> None:
    ca = str(home / "ca" / "authority.pem")
    strange = run(home, "lag", "--namesrv", namesrv, "--tls", code=1)
    nobody = run(home, "peek", "Asked", "--namesrv", namesrv, "--tls-ca", ca, code=1)
    assert [len(text.splitlines()) for text in (strange, nobody)] == [1, 1]
    wrong = run(home, "peek", "Asked", "--namesrv", namesrv, "--tls-ca", str(home / "none.pem"), code=1)
    assert "none.pem" in wrong
