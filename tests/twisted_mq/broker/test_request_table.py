"""The one table of what a broker serves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from twisted_mq.broker.request_table import together
from twisted_mq.protocol.codes import RequestCode


def send(channel: object, command: object) -> None:
    """Serves nothing."""


def pull(channel: object, command: object) -> None:
    """Serves nothing."""


def test_tables_become_one_by_the_codes_of_frames() -> None:
    table = together({RequestCode.SEND_MESSAGE: send}, {RequestCode.PULL_MESSAGE: pull})
    assert table == {10: send, 11: pull}
    assert {type(code) for code in table} == {int}


def test_a_request_is_served_once() -> None:
    with pytest.raises(ValueError, match="SEND_MESSAGE is served twice"):
        together({RequestCode.SEND_MESSAGE: send}, {RequestCode.SEND_MESSAGE: pull})


def test_a_broker_starts_without_the_classes_of_all_requests() -> None:
    """The registry names some 300 classes; making them takes a seventh of a start."""
    program = "import sys, twisted_mq.broker.tap, twisted_mq.broker.service; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "twisted_mq.broker.request_table" in loaded
    assert "twisted_mq.protocol.requests.registry" not in loaded
