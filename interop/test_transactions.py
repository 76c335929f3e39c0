"""Apache's transactional producer against both brokers.

They ask about a transaction after a second, then each half second, four times at most.
"""

from __future__ import annotations

import pytest

from interop.peers.clients import Clients, bodies, unique
from interop.peers.line_peer import Record
from interop.peers.servers import Cluster

pytestmark = pytest.mark.peer

CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
CHECKS = 4
"""transactionCheckMax of the brokers."""


def checked(messages: list[Record]) -> list[tuple[str, str]]:
    return [(message["body"], message["properties"]["TRANSACTION_CHECK_TIMES"]) for message in messages]


def test_commits_are_consumed_rollbacks_never_and_undecided_ones_after_a_check(
    java_clients: Clients, topic: str, group: str
) -> None:
    consumer = java_clients.push_consumer(group, topic)
    producer = java_clients.transaction_producer(unique("Transactions"))
    sent = producer.begin(topic, "committed", "commit")
    assert (sent["status"], sent["local_state"]) == ("SEND_OK", "COMMIT_MESSAGE")
    assert sent["transaction_id"] == sent["msg_id"]
    consumer.wait_bodies({"committed"})
    assert producer.begin(topic, "rolled back", "rollback")["local_state"] == "ROLLBACK_MESSAGE"
    producer.begin(topic, "rolled back later", check="rollback")
    asked_about = producer.begin(topic, "committed later", check="commit")
    assert asked_about["local_state"] == "UNKNOW"

    checks = producer.wait_checks(lambda events: {"rolled back later", "committed later"} <= set(bodies(events)))
    assert set(checked(checks)) == {("rolled back later", "1"), ("committed later", "1")}
    (message,) = [one for one in consumer.wait_bodies({"committed later"}) if one["body"] == "committed later"]
    properties = message["properties"]
    assert (message["topic"], message["msg_id"]) == (topic, asked_about["transaction_id"])
    assert (properties["TRAN_MSG"], properties["REAL_TOPIC"], properties["__transactionId__"]) == (
        "true", topic, asked_about["transaction_id"],
    )  # fmt: skip
    assert message["queue_id"] == asked_about["queue_id"] == int(properties["REAL_QID"])
    producer.begin(topic, "last", "commit")
    assert sorted(bodies(consumer.wait_bodies({"last"}))) == ["committed", "committed later", "last"]


def test_this_projects_producer_commits_rolls_back_and_answers_checks(
    our_clients: Clients, topic: str, group: str
) -> None:
    producer = our_clients.transaction_producer(unique("Transactions"))
    producer.begin(topic, "committed", "commit")
    producer.begin(topic, "rolled back", "rollback")
    producer.begin(topic, "rolled back later", check="rollback")
    producer.begin(topic, "committed later", check="commit")
    consumer = our_clients.push_consumer(group, topic)
    assert sorted(bodies(consumer.wait_bodies({"committed", "committed later"}))) == ["committed", "committed later"]
    checks = producer.wait_checks(lambda events: {"rolled back later", "committed later"} <= set(bodies(events)))
    assert set(checked(checks)) == {("rolled back later", "1"), ("committed later", "1")}


def test_another_producer_of_the_group_answers_for_one_that_is_gone(
    java_clients: Clients, topic: str, group: str
) -> None:
    consumer = java_clients.push_consumer(group, topic)
    name = unique("Transactions")
    first, second = java_clients.transaction_producer(name), java_clients.transaction_producer(name)
    second.begin(topic, "own", "commit")
    first.begin(topic, "orphan", check="commit")
    first.stop()
    assert "orphan" in bodies(second.wait_checks(lambda events: "orphan" in bodies(events)))
    assert sorted(bodies(consumer.wait_bodies({"orphan", "own"}))) == ["orphan", "own"]


def test_an_undecided_transaction_outlives_the_death_of_its_broker(
    java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    if cluster.kind == "apache":
        pytest.skip("Apache counts each round within the immunity as a check and gives the message up")
    name = unique("Transactions")
    producer = java_clients.transaction_producer(name)
    producer.begin(topic, "decided", "commit")
    producer.begin(topic, "undecided", check="commit", CHECK_IMMUNITY_TIME_IN_SECONDS="6")
    cluster.kill_broker()
    cluster.start_broker()
    cluster.wait_route(topic)
    java_clients.transaction_producer(name).begin(topic, "after", "rollback")
    consumer = java_clients.push_consumer(group, topic)
    assert set(bodies(consumer.wait_bodies({"decided", "undecided"}))) == {"decided", "undecided"}


def test_a_transaction_that_nobody_decides_is_given_up(
    java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    producer = java_clients.transaction_producer(unique("Transactions"))
    body = unique("never decided")
    producer.begin(topic, body)
    checks = producer.wait_checks(lambda events: len(events) >= CHECKS)
    cluster.wait_route(CHECK_MAX_TIME_TOPIC)
    given_up = java_clients.push_consumer(group, CHECK_MAX_TIME_TOPIC)
    (message,) = [one for one in given_up.wait_bodies({body}) if one["body"] == body]
    assert (message["properties"]["TRANSACTION_CHECK_TIMES"], message["properties"]["REAL_TOPIC"]) == (
        str(CHECKS),
        topic,
    )
    assert checked(checks) == [(body, str(number + 1)) for number in range(CHECKS)]
    assert len(producer.wait_checks(bool)) == CHECKS
