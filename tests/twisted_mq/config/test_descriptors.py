"""Number of connections that servers accept."""

from __future__ import annotations

import resource

import pytest

from twisted_mq.config.descriptors import most_connections


@pytest.mark.parametrize(("limits", "connections"), [((256, 4096), 2048), ((4096, 4096), 2048), ((1, 1), 1)])
def test_servers_take_all_descriptors_there_are_and_half_of_them_for_connections(monkeypatch, limits, connections):
    now = [limits]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: now.append(both))
    assert most_connections() == connections
