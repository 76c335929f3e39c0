"""pytest's plugin: fixtures for tests against a broker of their own. Installed with the package, it loads nothing else
before the first test that uses one of them.

mq_server     an EmbeddedServer: `.namesrv`, `.broker`, `.store_path`, and its calls
mq_topic      the name of a topic that nobody has used, with four queues

`mq_server` lives as long as `--mq-scope` says (ini: mq_scope; session), the topic for one test. Under pytest-xdist each worker
has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from twisted_mq.testing import EmbeddedServer

SCOPES = ("session", "package", "module", "class", "function")
STORES = ("file", "memory")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rocketmq", "RocketMQ broker for tests")
    for name, choices, meaning in (
        ("scope", SCOPES, "how long mq_server lives; session by default"),
        ("store", STORES, "where mq_server keeps messages; file by default"),
    ):
        group.addoption(f"--mq-{name}", choices=choices, help=meaning)
        parser.addini(f"mq_{name}", f"{meaning} ({', '.join(choices)})", default=choices[0])


def setting(config: pytest.Config, name: str, choices: tuple[str, ...]) -> Any:
    """What the command line says, or the ini-file. Raises UsageError for what is no choice."""
    value = config.getoption(f"mq_{name}") or config.getini(f"mq_{name}")
    if value not in choices:
        raise pytest.UsageError(f"mq_{name} = {value}: choose one of {', '.join(choices)}")
    return value


def chosen_scope(fixture_name: str, config: pytest.Config) -> Any:
    """Of the fixtures that may be shared."""
    return setting(config, "scope", SCOPES)


@pytest.fixture(scope=chosen_scope)
def mq_server(pytestconfig: pytest.Config) -> Iterator[EmbeddedServer]:
    """A name server and a broker in this process."""
    from twisted_mq.testing import EmbeddedServer

    with EmbeddedServer(store=setting(pytestconfig, "store", STORES)) as server:
        yield server


@pytest.fixture
def mq_topic(mq_server: EmbeddedServer, request: pytest.FixtureRequest) -> str:
    """A topic of this test alone."""
    return mq_server.new_topic(request.node.name)
