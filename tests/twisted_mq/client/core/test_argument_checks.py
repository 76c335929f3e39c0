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
        ("Orders", "topics: a list or dict is needed, got 'Orders'; write [\"Orders\"]"),
        (7, "topics: a list or dict is needed, got 7; write {\"Orders\": \"*\"}"),
        ([7], "topics: names and expressions are texts, got 7: '*'; write {\"Orders\": \"*\"}"),
        ({"a": None}, "topics: names and expressions are texts, got 'a': None; write {\"Orders\": \"*\"}"),
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
            "namesrv 'http://127.0.0.1:9876/': name servers are not reached by http; write '127.0.0.1:9876', the host and "
            "port of a name server",
        ),
        (
            "localhost",
            "namesrv 'localhost': 'localhost' is not an address of the form host:port; write localhost:9876, with the port",
        ),
        (9876, "namesrv: 9876 is no text and no list of texts; write host:port, as 127.0.0.1:9876"),
        ([("127.0.0.1", 9876)], None),
    ],
    ids=repr,
)
def test_name_servers_that_are_none(face: str, namesrv: Any, told: str | None) -> None:
    text = refused(lambda: make(face, "Producer", namesrv))
    assert text == (told or f"namesrv: {namesrv!r} is no text and no list of texts; write host:port, as 127.0.0.1:9876")


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
    assert f"is needed, got a {given}" in text
    assert f"got the class {given}; write {given}(...)" in refused(lambda: make(face, kind, **{argument: options}))


@pytest.mark.parametrize("kind", ["MQClient", "Admin"])
def test_options_of_a_client_are_a_clients(face: str, kind: str) -> None:
    made = getattr(FACES[face], kind)
    given = (Clock(), NAMESRV) if face == "client" else (NAMESRV,)
    told = refused(lambda: made(*given, options=client.ProducerOptions()))
    assert told == "options: ClientOptions is needed, got a ProducerOptions"


def test_client_of_another_face() -> None:
    other = blocking.MQClient(NAMESRV)
    told = refused(lambda: aio.Producer(group="g", client=other))  # type: ignore[arg-type]
    assert told == "client: aio.MQClient is needed, got a blocking.MQClient"


def test_options_beside_a_client_that_has_some() -> None:
    shared = aio.MQClient(NAMESRV)
    told = refused(lambda: aio.Producer(group="g", client=shared, client_options=aio.ClientOptions()))
    assert told == "client_options: the client has options already; write MQClient(..., options=...)"


def test_address_in_place_of_the_reactor() -> None:
    told = refused(lambda: client.Producer(NAMESRV, "g"))  # type: ignore[arg-type]
    assert told.startswith(f"reactor: Twisted's reactor is needed, got {NAMESRV!r}; without one use twisted_mq.aio")


@pytest.mark.parametrize("group", [None, 7, b"g"])
def test_group_that_is_no_text(face: str, group: Any) -> None:
    told = refused(lambda: make(face, "Producer", group=group))
    assert told == f'group: a text is needed, got {group!r}; write group="orders"'


def test_listener_that_is_no_function(face: str) -> None:
    told = refused(lambda: make(face, "PushConsumer", listener="print"))
    assert told.startswith("listener: a function is needed, got 'print'; write def listener(messages, context)")


def test_check_that_is_no_function(face: str) -> None:
    told = refused(lambda: make(face, "TransactionProducer", check=client.TransactionState.COMMIT))
    assert told.startswith("check: a function is needed, got <TransactionState.COMMIT")


@pytest.mark.parametrize(
    ("kind", "option", "value", "told"),
    [
        (
            client.ConsumerOptions,
            "message_model",
            "BROADCASTING",
            "MessageModel is needed, got 'BROADCASTING'; write MessageModel.CLUSTERING or MessageModel.BROADCASTING",
        ),
        (client.ConsumerOptions, "blocking_listener", 1, "bool is needed, got 1"),
        (client.ConsumerOptions, "hooks", print, f"a list or tuple is needed, got {print!r}; write [hook]"),
        (client.ConsumerOptions, "allocate", "averagely", "a function is needed, got 'averagely'"),
        (client.ProducerOptions, "auto_batch", True, "AutoBatch or None is needed, got True"),
        (client.ProducerOptions, "limits", 4096, "SendLimits is needed, got 4096"),
        (client.ClientOptions, "access_key", b"key", "str or None is needed, got b'key'"),
        (client.ClientOptions, "tls_enable", "true", "bool is needed, got 'true'"),
        (client.SendLimits, "compress_level", 23, "a number from 0 to 22 is needed, got 23"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_option_of_another_class(kind: type, option: str, value: Any, told: str) -> None:
    assert refused(lambda: kind(**{option: value})) == f"{kind.__name__}.{option}: {told}"
