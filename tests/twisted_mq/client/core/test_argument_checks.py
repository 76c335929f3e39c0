"""Arguments that cannot work are refused when an object is made: the error names the argument and what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.task import Clock

from twisted_mq import aio, blocking, client
from twisted_mq.client import ClientOptionIllegal
from twisted_mq.client.core.argument_checks import expressions

NAMESRV = "127.0.0.1:9876"


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(ClientOptionIllegal) as caught:
        make()
    return str(caught.value)


def deferred(kind: type, namesrv: Any = NAMESRV, **more: Any) -> Any:
    return kind(Clock(), more.pop("group", "g"), namesrv, **more)


MAKERS = {"client": deferred, "aio": lambda kind, namesrv=NAMESRV, **more: kind(namesrv, **{"group": "g"} | more)}
MAKERS["blocking"] = MAKERS["aio"]
FACES = {"client": client, "aio": aio, "blocking": blocking}


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make(face: str, name: str, *namesrv: Any, **more: Any) -> Any:
    return MAKERS[face](getattr(FACES[face], name), *namesrv, **more)


@pytest.mark.parametrize("kind", ["PushConsumer", "LitePullConsumer"])
@pytest.mark.parametrize("topics", [["a"], ("a",), {"a"}, {"a": "*"}], ids=repr)
def test_names_of_topics_are_all_of_their_messages(face: str, kind: str, topics: Any) -> None:
    consumer = make(face, kind, topics=topics)
    subscriptions = getattr(consumer, "_core", consumer).subscriptions
    assert {name: one.sub_string for name, one in subscriptions.items()} == {"a": "*"}


@pytest.mark.parametrize(
    ("topics", "told"),
    [
        ("Orders", "topics: must be a list or dict, got 'Orders'; write [\"Orders\"]"),
        (7, "topics: must be a list or dict, got 7; write {\"Orders\": \"*\"}"),
        ([7], "topics: names and expressions must be str, got 7: '*'; write {\"Orders\": \"*\"}"),
        ({"a": None}, "topics: names and expressions must be str, got 'a': None; write {\"Orders\": \"*\"}"),
    ],
    ids=repr,
)  # fmt: skip
def test_topics_of_another_kind(topics: Any, told: str) -> None:
    assert refused(lambda: expressions(topics)) == told


@pytest.mark.parametrize(
    ("namesrv", "told"),
    [
        (
            "http://127.0.0.1:9876/",
            "namesrv 'http://127.0.0.1:9876/': name servers do not use http; write '127.0.0.1:9876', the host and "
            "port of a name server",
        ),
        (
            "localhost",
            "namesrv 'localhost': 'localhost' is not an address of the form host:port; write localhost:9876, with the port",
        ),
        (9876, "namesrv: 9876 must be str or a list of str; write host:port, such as 127.0.0.1:9876"),
        ([("127.0.0.1", 9876)], None),
    ],
    ids=repr,
)
def test_name_servers_that_are_none(face: str, namesrv: Any, told: str | None) -> None:
    text = refused(lambda: make(face, "Producer", namesrv))
    assert text == (
        told or f"namesrv: {namesrv!r} must be str or a list of str; write host:port, such as 127.0.0.1:9876"
    )


OPTIONS = [
    ("Producer", "options", "ConsumerOptions"),
    ("PushConsumer", "options", "ProducerOptions"),
    ("LitePullConsumer", "options", "ClientOptions"),
    ("Producer", "client_options", "ProducerOptions"),
    ("OrderedProducer", "options", "ProducerOptions"),
    ("OrderedConsumer", "options", "ConsumerOptions"),
]


@pytest.mark.parametrize(("kind", "argument", "given"), OPTIONS, ids=lambda one: str(one))
def test_options_of_another_class(face: str, kind: str, argument: str, given: str) -> None:
    options = getattr(FACES[face], given)
    text = refused(lambda: make(face, kind, **{argument: options()}))
    assert text.startswith(f"{argument}: ")
    assert ": must be " in text and f", got a {given}" in text
    assert f"got the class {given}; write {given}(...)" in refused(lambda: make(face, kind, **{argument: options}))


@pytest.mark.parametrize("kind", ["MQClient", "Admin"])
def test_options_of_a_client_are_a_clients(face: str, kind: str) -> None:
    made = getattr(FACES[face], kind)
    given = (Clock(), NAMESRV) if face == "client" else (NAMESRV,)
    told = refused(lambda: made(*given, options=client.ProducerOptions()))
    assert told == "options: must be ClientOptions, got a ProducerOptions"


def test_client_of_another_face() -> None:
    other = blocking.MQClient(NAMESRV)
    told = refused(lambda: aio.Producer(group="g", client=other))  # type: ignore[arg-type]
    assert told == "client: must be aio.MQClient, got a blocking.MQClient"


def test_options_beside_a_client_that_has_some() -> None:
    shared = aio.MQClient(NAMESRV)
    told = refused(lambda: aio.Producer(group="g", client=shared, client_options=aio.ClientOptions()))
    assert told == "client_options: the client already has options; write MQClient(..., options=...)"


def test_address_in_place_of_the_reactor() -> None:
    told = refused(lambda: client.Producer(NAMESRV, "g"))  # type: ignore[arg-type]
    assert told.startswith(f"reactor: must be Twisted's reactor, got {NAMESRV!r}; without one use twisted_mq.aio")


@pytest.mark.parametrize("group", [None, 7, b"g"])
def test_group_that_is_no_text(face: str, group: Any) -> None:
    told = refused(lambda: make(face, "Producer", group=group))
    assert told == f'group: must be str, got {group!r}; write group="orders"'


def test_listener_that_is_no_function(face: str) -> None:
    told = refused(lambda: make(face, "PushConsumer", listener="print"))
    assert told.startswith("listener: must be a function, got 'print'; write def listener(messages, context)")


def test_check_that_is_no_function(face: str) -> None:
    told = refused(lambda: make(face, "TransactionProducer", check=client.TransactionState.COMMIT))
    assert told.startswith("check: must be a function, got <TransactionState.COMMIT")


@pytest.mark.parametrize(
    ("kind", "option", "value", "told"),
    [
        (
            client.ConsumerOptions,
            "message_model",
            "BROADCASTING",
            "must be MessageModel, got 'BROADCASTING'; write MessageModel.CLUSTERING or MessageModel.BROADCASTING",
        ),
        (client.ConsumerOptions, "blocking_listener", 1, "must be bool, got 1"),
        (client.ConsumerOptions, "hooks", print, f"must be a list or tuple, got {print!r}; write [hook]"),
        (client.ConsumerOptions, "allocate", "averagely", "must be a function, got 'averagely'"),
        (client.ProducerOptions, "auto_batch", True, "must be AutoBatch or None, got True"),
        (client.ProducerOptions, "limits", 4096, "must be SendLimits, got 4096"),
        (client.ClientOptions, "access_key", b"key", "must be str or None, got b'key'"),
        (client.ClientOptions, "tls_enable", "true", "must be bool, got 'true'"),
        (client.SendLimits, "compress_level", 23, "must be a number from 0 to 22, got 23"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_option_of_another_class(kind: type, option: str, value: Any, told: str) -> None:
    assert refused(lambda: kind(**{option: value})) == f"{kind.__name__}.{option}: {told}"
