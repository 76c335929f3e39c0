"""`mq console` and `mq up --console-port` as a person starts them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request

import pytest

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]


def login_page(address: str) -> str:
    with urllib.request.urlopen(address.partition("#")[0], timeout=30) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize(
    ("words", "lines"),
    [(["console", "--namesrv", "127.0.0.1:1"], 1), (["up", "--temporary", "--port", "0"], 2)],
    ids=["alone", "beside the cluster"],
)
def test_a_console_prints_where_one_comes_in(words: list[str], lines: int) -> None:
    command = [*MQ, *words, "--console-port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [json.loads(process.stdout.readline()) for _ in range(lines)]
        address = said[-1]["console"]
        assert address.startswith("http://127.0.0.1:") and len(address.partition("/login#")[2]) > 40
        assert "Token" in login_page(address)
        process.terminate()
        assert process.wait(60) in (0, 130)


@pytest.mark.parametrize("url", ["prometheus:9090", "https://prometheus", "http://", "http://h/?query=x"])
def test_an_address_of_prometheus_that_is_none_is_one_line(url: str) -> None:
    done = subprocess.run([*MQ, "console", "--prometheus", url], capture_output=True, text=True, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"--prometheus: http://HOST:PORT is needed, got {url!r}" in done.stderr


def test_a_busy_port_is_one_line_that_names_the_flag() -> None:
    with subprocess.Popen(
        [*MQ, "console", "--console-port", "0", "--json"], stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        port = json.loads(first.stdout.readline())["console"].split(":")[2].split("/")[0]
        done = subprocess.run([*MQ, "console", "--console-port", port], capture_output=True, text=True, timeout=60)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        assert f"port {port}" in done.stderr and "--console-port" in done.stderr
        first.terminate()
