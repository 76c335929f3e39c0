"""Every block of code in README.md and docs/ runs unchanged, in the environment of a new user."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.process import Process, wait_until
from tests.docs.blocks import PAGES, ROOT, RUNNABLE, SHOWN_ONLY, blocks, runs
from tests.docs.reader import BROKER, NAME_SERVER, Reader, ports_of_its_own

EVERY_BLOCK = [block for page in PAGES for block in blocks(page)]
NOT_RUN: set[str] = {
    "needs a broker of its own",
    "needs a metastore",
    "needs rocketmq-python-client, which is installed for itself",
    "goes on until it is stopped",
    "make demo runs it",
    "needs a checkout",
    "needs a package index",
    "nothing was given up on",
    "needs a ZooKeeper of the reader's",
    "needs a session of the reader's",
    "needs Apache's servers",
    "needs a collector",
    "needs Kafka or RabbitMQ",
    "needs two clusters",
    "needs a build of Apache's dashboard",
    "needs a package of the reader's",
    "needs grpcurl",
    "needs a store beside a running broker",
    "takes minutes",
    "tests/deploy runs it with processes",
    "takes long, and kills processes",
    "takes twenty minutes",
    "takes an hour",
}
"""Why blocks are not run."""
ENDED = {0, -signal.SIGTERM}
"""Exit codes of stopped servers; twistd ends with the signal that it got."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def shared_ports(home: Path) -> Iterator[dict[str, str]]:
    """Yield the ports of the `mq up` that the pages share, with the store of a new user."""
    reader = Reader(home, home, {NAME_SERVER: "0", BROKER: "0"})
    command = ["mq", "up", "--namesrv-port", "0", "--port", "0"]
    server = Process.start(command, home / "mq-up.log", home, env=reader.environment)
    try:
        wait_until(lambda: "Ctrl-C" in server.output(), "mq up is ready")
        name_server, broker = (line.partition(",")[0].rpartition(":")[2] for line in server.output().splitlines()[:2])
        yield {NAME_SERVER: name_server, BROKER: broker}
    finally:
        assert server.stop() == 0, server.output_tail()


@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, home: Path, shared_ports: dict[str, str], tmp_path: Path) -> None:
    wanted = [block for block in blocks(page) if block.not_run is None and (block.language in RUNNABLE or block.mark)]
    named = {block.port for block in wanted if block.port is not None}
    reader = Reader(home, tmp_path, ports_of_its_own(named) if named else shared_ports)
    try:
        for block in wanted:
            if block.mark != "up already":
                reader.read(block)
    finally:
        codes = reader.leave()
    assert set(codes) <= ENDED


def test_every_block_runs_or_says_why_not() -> None:
    unknown = [
        f"{block}: {block.language or 'no language'}"
        for block in EVERY_BLOCK
        if block.language not in RUNNABLE | SHOWN_ONLY
    ]
    assert unknown == []
    assert {block.not_run for block in EVERY_BLOCK if block.not_run is not None} == NOT_RUN


def test_marks_are_known() -> None:
    marks = {block.mark for block in EVERY_BLOCK if block.not_run is None and block.port is None}
    assert marks <= {"", "prints", "up already"}
