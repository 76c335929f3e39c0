"""Coordinator of an address, and the modules loaded for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from twisted.internet import reactor
from twisted.internet.task import Clock

from twisted_mq import extras
from twisted_mq.coordination import settings
from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.connect import coordinator_for, ensemble_of
from twisted_mq.coordination.interfaces import Create
from twisted_mq.coordination.memory import MemoryCoordinator
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.coordination.zookeeper import ZooKeeperCoordinator


def test_memory_is_one_tree_for_each_reactor(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr("twisted_mq.coordination.connect.boot_seconds", clock.seconds)
    one, other = (coordinator_for(CoordinatorSettings(parse_address("memory"), 2.0), clock) for _ in range(2))
    assert isinstance(one, MemoryCoordinator)
    made = []
    one.start()
    other.start()
    clock.advance(0.1)
    clock.advance(0.1)
    one.commit([Create("/a")])
    clock.advance(0.1)
    other.children("/").addCallback(made.append)
    clock.pump([0.1, 0.1])
    assert made == [("a",)]
    assert (ensemble_of(clock).tree.children("/"), ensemble_of(Clock()).tree.children("/")) == (["a"], [])


def test_other_addresses_are_zookeepers():
    made = coordinator_for(CoordinatorSettings(parse_address("zk1:2181/mq")), reactor)
    assert isinstance(made, ZooKeeperCoordinator)
    assert (made.session_id, made.session_seconds, made.holds()) == (0, 6.0, False)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(
        extras.MissingExtra, match=r'needs javaproperties, kazoo: pip install "rocketmq-twisted\[ordered\]"'
    ):
        coordinator_for(CoordinatorSettings(parse_address("zk1:2181")), reactor)


def test_kazoo_is_loaded_with_the_first_coordinator_on_zookeeper_alone():
    program = (
        "import sys, twisted_mq.broker.tap, twisted_mq.coordination.connect as c, twisted_mq.coordination.election\n"
        "from twisted_mq.coordination.settings import CoordinatorSettings; from twisted_mq.coordination.address import *\n"
        "from twisted.internet import reactor\n"
        "c.coordinator_for(CoordinatorSettings(parse_address('memory')), reactor); before = 'kazoo' in sys.modules\n"
        "c.coordinator_for(CoordinatorSettings(parse_address('zk:1')), reactor); print(before, 'kazoo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


@pytest.mark.parametrize(
    "refused",
    [
        {"auth": "secret"},
        {"auth": ":secret"},
        {"auth": "user:"},
        {"certificate_file": "c.pem", "ca_file": "ca.pem"},
        {"key_file": "k.pem"},
        {"certificate_file": "c.pem", "key_file": "k.pem"},
    ],
)
def test_settings_that_cant_work_are_refused_without_the_secret(refused: dict[str, str]):
    with pytest.raises(ValueError, match=r"USER:PASSWORD|CA file") as said:
        CoordinatorSettings(parse_address("zk1"), **refused)
    assert "secret" not in str(said.value)


def test_a_password_is_not_shown():
    assert "secret" not in repr(CoordinatorSettings(parse_address("zk1"), auth="user:secret"))


def test_boot_seconds_never_go_back():
    before = settings.boot_seconds()
    assert settings.boot_seconds() >= before
