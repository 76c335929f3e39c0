"""docs/how-to/deploy.md, followed line by line: what it starts takes messages, is ready, and stops cleanly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.follower import ENDED, Follower, all_blocks, lines_of

SECTIONS = ("One machine with systemd", "An image", "Two masters with slaves, by Compose")


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    found = Follower(tmp_path)
    try:
        yield found
    finally:
        codes = found.leave()
    assert set(codes) <= ENDED


def test_one_machine(follower: Follower) -> None:
    follower.follow(SECTIONS[0])
    printed = follower.printed
    assert '"ok": true' in next(text for command, text in printed.items() if "/ready" in command)
    assert "hello" in next(text for command, text in printed.items() if "consume" in command)
    assert f"http://127.0.0.1:{follower.ports['8090']}/login#" in printed["journalctl mqconsole"]
    targets = re.search(r"targets: \[(.*)\]", (follower.folder / "deploy" / "prometheus.yml").read_text())
    assert targets is not None
    for target in re.findall(r'"([^"]+)"', targets[1]):
        follower.do(f"curl --silent --fail http://{target}/metrics --output /dev/null")


def test_an_image(follower: Follower) -> None:
    follower.follow(SECTIONS[1])
    assert "SEND_OK" in next(text for command, text in follower.printed.items() if "send" in command)
    store = follower.containers["broker"].ground.path("/var/lib/rocketmq/store")
    assert (store / "commitlog").is_dir()
    assert not (store / "abort").exists()


def test_two_masters_with_slaves(follower: Follower) -> None:
    follower.follow(SECTIONS[2])
    listed = next(text for command, text in follower.printed.items() if "clusterList" in command)
    found = {
        (row[1], row[2], row[3]) for row in map(str.split, listed.splitlines()) if row and row[0] == "DefaultCluster"
    }
    ports = follower.ports
    assert found == {
        ("broker-a", "0", f"127.0.0.1:{ports['10911']}"), ("broker-a", "1", f"127.0.0.1:{ports['10921']}"),
        ("broker-b", "0", f"127.0.0.1:{ports['10931']}"), ("broker-b", "1", f"127.0.0.1:{ports['10941']}"),
    }  # fmt: skip
    assert f"http://0.0.0.0:{ports['8090']}/login#" in follower.printed["logs console"]


def test_every_command_of_the_page_is_followed() -> None:
    followed = [line for title in SECTIONS for line in lines_of(title)]
    assert [line for line in all_blocks() if line not in followed] == [
        "helm install rocketmq deploy/helm/rocketmq-twisted --set image.repository=registry.example.org/rocketmq-twisted"
    ]
