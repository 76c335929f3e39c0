"""Provides pytest fixtures for tests against a broker of their own.

The plugin is installed with the package, and loads nothing else before the first test that uses one of the fixtures.

mq_server     an EmbeddedServer: `.namesrv`, `.broker`, `.grpc`, `.store_path`, and its calls
mq_topic      the name of a new topic, with four queues
mq_producer   a started twisted_mq.blocking.Producer
mq_consumer   a started twisted_mq.blocking.PushConsumer of `mq_topic`, from its first message on

`mq_server` and `mq_producer` have the scope of `--mq-scope` (ini: mq_scope; session), the others for one test. Under
pytest-xdist each worker has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from twisted_mq.blocking import Producer, PushConsumer
    from twisted_mq.testing import EmbeddedServer

SCOPES = ("session", "package", "module", "class", "function")
STORES = ("file", "memory")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rocketmq", "RocketMQ broker for tests")
    for name, choices, meaning in (
        ("scope", SCOPES, "how long mq_server and mq_producer live; session by default"),
        ("store", STORES, "where mq_server keeps messages; file by default"),
    ):
        group.addoption(f"--mq-{name}", choices=choices, help=meaning)
        parser.addini(f"mq_{name}", f"{meaning} ({', '.join(choices)})", default=choices[0])


def setting(config: pytest.Config, name: str, choices: tuple[str, ...]) -> Any:
    """Return the choice of the command line, or of the ini-file. Raises UsageError for any other value."""
    value = config.getoption(f"mq_{name}") or config.getini(f"mq_{name}")
    if value not in choices:
        raise pytest.UsageError(f"mq_{name} = {value}: choose one of {', '.join(choices)}")
    return value


def chosen_scope(fixture_name: str, config: pytest.Config) -> Any:
    """Return the scope of the fixtures that may be shared."""
    return setting(config, "scope", SCOPES)


@pytest.fixture(scope=chosen_scope)
def mq_server(pytestconfig: pytest.Config) -> Iterator[EmbeddedServer]:
    """Return a name server and a broker in this process."""
    from twisted_mq.testing import EmbeddedServer

    with EmbeddedServer(store=setting(pytestconfig, "store", STORES)) as server:
        yield server


@pytest.fixture
def mq_topic(mq_server: EmbeddedServer, request: pytest.FixtureRequest) -> str:
    """Return a topic for this test alone."""
    return mq_server.new_topic(request.node.name)


@pytest.fixture(scope=chosen_scope)
def mq_producer(mq_server: EmbeddedServer) -> Iterator[Producer]:
    """Return a producer for blocking tests."""
    from twisted_mq.blocking import Producer

    with Producer(mq_server.namesrv, group="mq_producer") as producer:
        yield producer


@pytest.fixture
def mq_consumer(mq_server: EmbeddedServer, mq_topic: str) -> Iterator[PushConsumer]:
    """Return a consumer for blocking tests, in a group of its own."""
    from twisted_mq.blocking import ConsumeFromWhere, ConsumerOptions, PushConsumer

    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
    group = f"mq_consumer-{mq_topic}"
    with PushConsumer(mq_server.namesrv, group=group, topics={mq_topic: "*"}, options=options) as consumer:
        yield consumer
