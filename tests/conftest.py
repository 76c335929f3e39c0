"""Marks the TestCases of trial below tests/twisted_mq: `make test` gives them to trial, all else to pytest."""

from __future__ import annotations

import hypothesis
import pytest
from twisted.trial.unittest import SynchronousTestCase

TRIAL_PACKAGE = "tests.twisted_mq."

# A shared machine is slow at times: no test may fail by the clock.
hypothesis.settings.register_profile("no-deadline", deadline=None)
hypothesis.settings.load_profile("no-deadline")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "trial: a TestCase that `trial tests.twisted_mq` runs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        owner = getattr(item, "cls", None)
        if owner is None or not issubclass(owner, SynchronousTestCase):
            continue
        if owner.__module__.startswith(TRIAL_PACKAGE):
            item.add_marker("trial")
