"""`mq peek`, `tail`, `lag` and `dlq` against a broker: their output, and that no offset of a group moves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from twisted_mq.blocking import Message, Producer, PushConsumer
from twisted_mq.testing import EmbeddedServer

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def run(server: EmbeddedServer, *words: str, code: int = 0) -> str:
    """Return the output of the command, or its standard error after an expected failure."""
    environment = {**os.environ, "NAMESRV_ADDR": server.namesrv, "NO_COLOR": "1"}
    done = subprocess.run([*MQ, *words], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def send(server: EmbeddedServer, topic: str, *bodies: str) -> None:
    with Producer(server.namesrv, group="looks") as producer:
        for body in bodies:
            producer.send(Message(topic, body.encode(), keys=body, tags="even" if int(body) % 2 == 0 else "odd"))


def test_peek_shows_messages_from_a_place_on_and_moves_nothing(server: EmbeddedServer) -> None:
    send(server, "Peeked", *map(str, range(8)))
    everything = lines(run(server, "peek", "Peeked", "--json"))
    assert sorted(one["body"] for one in everything) == [str(number) for number in range(8)]
    assert {one["body"] for one in lines(run(server, "peek", "Peeked", "--tags", "odd", "--json"))} == {
        "1",
        "3",
        "5",
        "7",
    }
    first = lines(run(server, "peek", "Peeked", "--count", "1", "--from", "1", "--json"))
    assert [one["queueOffset"] for one in first] == [1] * len(first) and first
    assert run(server, "peek", "Peeked", "--from", "latest", "--raw") == ""
    assert run(server, "peek", "Peeked", "--from", "2000-01-01T00:00", "--raw").split() != []
    again = lines(run(server, "peek", "Peeked", "--json"))
    assert again == everything


def test_a_beginning_that_is_none_is_named_with_what_to_give(server: EmbeddedServer) -> None:
    send(server, "Peeked", "0")
    told = run(server, "peek", "Peeked", "--from", "yesterday", code=1)
    assert "--from yesterday is not a position" in told and "earliest, latest, a queue offset, or a time" in told


def test_tail_prints_what_comes_until_it_is_interrupted(server: EmbeddedServer) -> None:
    send(server, "Tailed", "0")
    environment = {**os.environ, "NAMESRV_ADDR": server.namesrv, "PYTHONUNBUFFERED": "1"}
    command = [*MQ, "tail", "Tailed", "--last", "1", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["body"] == "0"
        send(server, "Tailed", "1")
        assert json.loads(process.stdout.readline())["body"] == "1"
        process.terminate()
        assert process.wait(30) == 130


def test_lag_of_all_groups_and_of_one_by_queue(server: EmbeddedServer) -> None:
    send(server, "Lagging", *map(str, range(6)))
    with PushConsumer(server.namesrv, group="slow", topics={"Lagging": "*"}) as consumer:
        for number, message in enumerate(consumer.messages(timeout=20), 1):
            message.ack()
            if number == 6:
                break
    send(server, "Lagging", "6", "7")
    rows = [row for row in lines(run(server, "lag", "--json")) if row["group"] == "slow" and row["topic"] == "Lagging"]
    assert [(row["members"], row["lag"]) for row in rows] == [(0, 2)]
    queues = [row for row in lines(run(server, "lag", "slow", "--json")) if row["topic"] == "Lagging"]
    assert sum(row["lag"] for row in queues) == 2
    assert sum(row["end"] for row in queues) == 8
    assert run(server, "lag", "slow").splitlines()[0].startswith("topic\tbroker\tqueueId\tcommitted")


def give_up(server: EmbeddedServer, group: str, topic: str, *bodies: str) -> None:
    """A group that gives up on messages at once."""
    send(server, topic, *bodies)
    with PushConsumer(server.namesrv, group=group, topics={topic: "*"}) as consumer:
        for number, message in enumerate(consumer.messages(timeout=20), 1):
            message.retry(delay_level=-1)
            if number == len(bodies):
                break


def test_dead_letters_are_listed_shown_exported_and_sent_again_once(server: EmbeddedServer) -> None:
    give_up(server, "broken", "Failing", "1", "2")
    listed = lines(run(server, "dlq", "list", "--json"))
    assert {"group": "broken", "messages": 2, "notResent": 2} in listed
    assert {one["body"] for one in lines(run(server, "dlq", "show", "broken", "--json"))} == {"1", "2"}
    assert len(lines(run(server, "dlq", "export", "broken"))) == 2
    planned = run(server, "dlq", "resend", "broken", "--dry-run").splitlines()[1:]
    assert [row.split("\t")[:2] for row in planned] == [["would be sent", "Failing"]] * 2
    sent = run(server, "dlq", "resend", "broken").splitlines()[1:]
    assert [row.split("\t")[:2] for row in sent] == [["SEND_OK", "Failing"]] * 2
    assert run(server, "dlq", "resend", "broken").splitlines()[1:] == []
    assert {"group": "broken", "messages": 2, "notResent": 0} in lines(run(server, "dlq", "list", "--json"))
    chosen = run(server, "dlq", "resend", "broken", "--key", "2").splitlines()[1:]
    assert len(chosen) == 1
    assert [one["body"] for one in lines(run(server, "dlq", "export", "broken", "--key", "1"))] == ["1"]
    assert len(lines(run(server, "dlq", "show", "broken", "--count", "1", "--until", "2999-01-01", "--json"))) == 1
    for past in (["--until", "2000-01-01"], ["--id", "nowhere"]):
        assert run(server, "dlq", "export", "broken", *past) == ""
        assert run(server, "dlq", "resend", "broken", "--dry-run", *past).splitlines()[1:] == []
    since = run(server, "dlq", "resend", "broken", "--dry-run", "--since", "2000-01-01").splitlines()[1:]
    assert len(since) == 2
    assert "--since soon is not a time; give a time" in run(
        server, "dlq", "resend", "broken", "--since", "soon", code=1
    )
    bodies = sorted(one["body"] for one in lines(run(server, "peek", "Failing", "--json")))
    assert bodies == ["1", "1", "2", "2", "2"]
    resent = [
        one for one in lines(run(server, "peek", "Failing", "--json")) if "DLQ_ORIGIN_MESSAGE_ID" in one["properties"]
    ]
    assert len(resent) == 3 and all("RETRY_TOPIC" not in one["properties"] for one in resent)


def test_a_group_without_dead_letters_is_told_which_have(server: EmbeddedServer) -> None:
    give_up(server, "other", "Failing2", "1")
    told = run(server, "dlq", "show", "nobody", code=1)
    assert "group nobody has no dead letters" in told and "other" in told


def test_a_group_whose_members_are_at_work_is_put_nowhere(server: EmbeddedServer) -> None:
    send(server, "Busy", "1")
    with PushConsumer(server.namesrv, group="busy", topics={"Busy": "*"}) as consumer:
        next(consumer.messages(timeout=20)).ack()
        told = run(server, "consume", "Busy", "--group", "busy", "--from", "earliest", code=1)
    assert (
        told
        == "mq: group busy has running members; stop them, or reset the offsets with `mq admin resetOffsetByTime`\n"
    )


def test_dead_letters_are_sent_again_once_also_where_a_broker_makes_no_groups_by_itself() -> None:
    with EmbeddedServer() as server:
        give_up(server, "broken", "Failing", "1")
        run(
            server,
            "admin",
            "updateBrokerConfig",
            "-c",
            "DefaultCluster",
            "-k",
            "autoCreateSubscriptionGroup",
            "-v",
            "false",
        )
        assert len(run(server, "dlq", "resend", "broken").splitlines()[1:]) == 1
        assert run(server, "dlq", "resend", "broken").splitlines()[1:] == []
