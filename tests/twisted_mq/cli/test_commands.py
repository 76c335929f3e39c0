"""Commands as a person runs them: `mq up` in a process of its own, the others against it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]
MQADMIN = [sys.executable, "-c", "from twisted_mq.cli.mqadmin import main; main()"]


def environment(**more: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name != "NAMESRV_ADDR"}, **more}


@pytest.fixture(scope="module")
def up() -> Iterator[subprocess.Popen]:
    """A running `mq up`; `banner` are its lines."""
    command = [*MQ, "up", "--temporary", "--namesrv-port", "0", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(PYTHONUNBUFFERED="1")) as process:
        process.banner = [process.stdout.readline() for _ in range(6)]
        yield process
        if process.poll() is None:
            process.terminate()
            process.wait(60)


@pytest.fixture
def name_server(up) -> str:
    return up.banner[0].split()[2]


def run(*command: str, name_server: str = "127.0.0.1:1", text: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        command, capture_output=True, text=True, input=text, env=environment(NAMESRV_ADDR=name_server), timeout=60
    )


def test_up_says_what_runs_where(up):
    name_server, broker, grpc, store, try_this, stop = up.banner
    assert name_server.startswith("name server  127.0.0.1:")
    assert broker.split()[-1] == broker.split()[1].rstrip(",")
    assert grpc.startswith("gRPC         127.0.0.1:")
    assert store.startswith("store        ") and store.endswith("(removed at the end)\n")
    assert try_this == f'try          mq send Orders "hello" --namesrv {name_server.split()[2]}\n'
    assert stop == "Ctrl-C stops both\n"


def test_a_message_goes_through(name_server):
    sent = run(*MQ, "send", "Orders", "hello", "--tags", "new", "--keys", "k1 k2", name_server=name_server)
    assert (sent.returncode, sent.stderr, sent.stdout.splitlines()[1].split("\t")[0]) == (0, "", "SEND_OK")
    message_id = sent.stdout.splitlines()[1].split("\t")[1]
    arguments = ["consume", "Orders", "--group", "g1", "--count", "1"]
    got = run(*MQ, *arguments, name_server=name_server)
    assert got.stdout.splitlines()[1].split("\t")[3:] == [message_id, "new", "k1 k2", "hello"]


def test_lines_go_out_and_come_back_by_tag(name_server):
    run(*MQ, "send", "Lines", "--tags", "a", name_server=name_server, text="one\n\ntwo\n")
    run(*MQ, "send", "Lines", "three", "--tags", "b", "--count", "2", name_server=name_server)
    got = run(*MQ, "consume", "Lines", "--group", "g2", "--tags", "a", "--count", "2", "--raw", name_server=name_server)
    assert sorted(got.stdout.splitlines()) == ["one", "two"]
    arguments = ["consume", "Lines", "--group", "g3", "--tags", "b", "--idle", "2", "--json"]
    got = run(*MQ, *arguments, name_server=name_server)
    assert [json.loads(line)["body"] for line in got.stdout.splitlines()] == ["three", "three"]


def test_what_was_consumed_is_not_consumed_again(name_server):
    run(*MQ, "send", "Once", name_server=name_server, text="1\n2\n3\n")
    arguments = ["consume", "Once", "--group", "g4", "--raw"]
    first = run(*MQ, *arguments, "--count", "2", name_server=name_server)
    second = run(*MQ, *arguments, "--idle", "2", name_server=name_server)
    assert sorted((first.stdout + second.stdout).split()) == ["1", "2", "3"]


def test_mqadmin_and_mq_admin_are_the_same(name_server):
    made = run(
        *MQADMIN, "updateTopic", "-c", "DefaultCluster", "-t", "Made", "-r", "2", "-w", "2", name_server=name_server
    )
    assert made.stdout.splitlines()[0].startswith("create topic to 127.0.0.1:")
    arguments = ["topicRoute", "-t", "Made", "-l"]
    first, second = (run(*tool, *arguments, name_server=name_server) for tool in (MQADMIN, [*MQ, "admin"]))
    assert first.stdout.splitlines()[-1].split() == ["Total:", "1", "2", "2"]
    assert (first.stdout, first.returncode) == (second.stdout, second.returncode)
    assert "Made" in run(*MQADMIN, "topicList", "-n", name_server).stdout.split()
    gone = run(*MQADMIN, "deleteTopic", "-c", "DefaultCluster", "-t", "Made", name_server=name_server)
    assert gone.stdout.splitlines()[1] == "delete topic [Made] from NameServer success."
    assert run(*MQADMIN, "topicRoute", "-t", "Made", name_server=name_server).returncode == 1


@pytest.mark.parametrize(
    "command",
    [[*MQ, "send", "T", "x"], [*MQ, "consume", "T", "--group", "g"], [*MQADMIN, "topicList"]],
    ids=["send", "consume", "mqadmin"],
)
def test_without_a_name_server_one_line_says_how_to_start_one(command):
    done = run(*command)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "mq up" in done.stderr
    assert "127.0.0.1:1" in done.stderr


def test_a_busy_port_is_one_line_that_names_it(name_server):
    port = name_server.split(":")[1]
    done = run(*MQ, "up", "--temporary", "--namesrv-port", port, "--port", "0")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert port in done.stderr


def test_the_demo_consumes_what_it_sends():
    done = run(*MQ, "demo", "--messages", "100", "--no-report")
    told = [line for line in done.stderr.splitlines() if "long turn" not in line]  # a busy machine's
    assert (done.returncode, told) == (0, [])
    rows = [line.split("\t")[:4] for line in done.stdout.splitlines() if "\t" in line]
    assert rows[1:] == [
        ["sent singly", "DemoOrders", "SEND_OK", "100"],
        ["sent in batches of 32", "DemoMetrics", "SEND_OK", "32"],
        ["consumed", "group demo_audit", "", "132"],
        ["consumed", "group demo_paid", "", "33"],
    ]


def test_ctrl_c_stops_both_and_removes_the_temporary_store(up):
    store = up.banner[3].split()[1]
    assert os.path.isdir(store)
    up.send_signal(signal.SIGINT)
    assert (up.stdout.readline(), up.wait(60), os.path.exists(store)) == ("stopped\n", 0, False)
