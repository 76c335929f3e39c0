"""Our subcommands against the answers that Apache's servers gave to Apache's mqadmin: same requests, same output."""

import datetime

import pytest

from tests.twisted_mq.cli.admin.recorded import RecordedPeers, exchanges, printed, run
from twisted_mq.cli.admin import topic_route
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError

COMMANDS = [
    "topicList",
    "topicList -c",
    "topicRoute -t CapAdmT",
    "updateTopic -b 127.0.0.2:20911 -t CapAdmT -r 3 -w 3",
    "updateTopic -c CapCluster -t CapAdmT2 -r 2 -w 2 -p 6 -o true",
    "updateTopic -b 127.0.0.2:20911 -t CapAdmT3 -r 1 -w 1 -a +message.type=FIFO",
    "deleteTopic -c CapCluster -t CapAdmT",
    "deleteTopic -c CapCluster -t CapAdmT2",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_output_is_what_apaches_tool_printed(command):
    peers = RecordedPeers(exchanges("admin_topic", command))
    assert run(peers, command) == (printed(command), [])


def test_a_route_without_write_permission_prints_as_recorded():
    command = "topicRoute -t CapAdmin"
    peers = RecordedPeers(exchanges("admin_namesrv", command))
    assert run(peers, command) == (printed(command), [])


def test_topic_status_prints_as_recorded(monkeypatch):
    command = "topicStatus -t CapAdmin"
    in_utc = topic_route.lines
    monkeypatch.setattr(topic_route, "lines", lambda offsets: in_utc(offsets, datetime.UTC))
    peers = RecordedPeers(exchanges("admin_topic", command))
    assert run(peers, command) == (printed(command), [])


def test_requests_go_to_the_name_server_first_and_then_to_the_broker():
    peers = RecordedPeers(exchanges("admin_topic", "deleteTopic -c CapCluster -t CapAdmT"))
    run(peers, "deleteTopic -c CapCluster -t CapAdmT")
    assert peers.requests == [
        ("127.0.0.2:29876", RequestCode.GET_BROKER_CLUSTER_INFO),
        ("127.0.0.2:20911", RequestCode.DELETE_TOPIC_IN_BROKER),
        ("127.0.0.2:29876", RequestCode.DELETE_TOPIC_IN_NAMESRV),
    ]


def test_an_unknown_topic_is_the_name_servers_refusal():
    peers = RecordedPeers(exchanges("admin_topic", "topicRoute -t CapNoSuch"))
    with pytest.raises(BrokerError) as caught:
        run(peers, "topicRoute -t CapNoSuch")
    assert (caught.value.response_code, caught.value.remark.splitlines()[0]) == (
        17,
        "No topic route info in name server for the topic: CapNoSuch",
    )
