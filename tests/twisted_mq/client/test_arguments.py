"""Arguments of producers and consumers: each one is in their own signature."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from twisted.internet.task import Clock

from tests.support.fake_broker import FakeCluster
from twisted_mq.client import LitePullConsumer, MQClient, Producer, PushConsumer, TransactionProducer

USERS = [Producer, TransactionProducer, PushConsumer, LitePullConsumer]


def arguments(made: type) -> dict[str, Any]:
    return {name: (one.kind, one.default) for name, one in inspect.signature(made).parameters.items()}


@pytest.mark.parametrize("made", [*USERS, MQClient])
def test_misspelt_argument_names_the_class_that_was_called(made: type) -> None:
    with pytest.raises(TypeError) as caught:
        made(Clock(), "g", grupo="h")
    told, _, _ = str(caught.value).partition(". Did you mean")  # Python 3.13 knows better
    assert told == f"{made.__name__}.__init__() got an unexpected keyword argument 'grupo'"


@pytest.mark.parametrize("made", USERS)
def test_arguments_of_an_own_client_are_those_of_a_client(made: type) -> None:
    of_client = {name: one for name, one in arguments(MQClient).items() if name not in ("namesrv", "options")}
    assert arguments(made).items() >= of_client.items()


@pytest.mark.parametrize(("made", "base"), [(PushConsumer, LitePullConsumer), (TransactionProducer, Producer)])
def test_kinds_of_one_thing_share_their_arguments(made: type, base: type) -> None:
    own = {"listener", "auto_commit", "check"}
    kept = [{name: one for name, one in arguments(each).items() if name not in own} for each in (made, base)]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("made", USERS)
def test_arguments_reach_the_client(made: type) -> None:
    cluster = FakeCluster(Clock(), 1)
    own = {"check": lambda message: None} if made is TransactionProducer else {}
    user = made(
        Clock(), "g", cluster.namesrv, connect=cluster.network.connect, ip="10.9.9.9", instance_name="me",
        get_pid=lambda: 77, **own,
    )  # fmt: skip
    assert (user.client.client_id, user.client.ip) == ("10.9.9.9@me", "10.9.9.9")
