import pytest
from twisted.internet import defer

from tests.twisted_mq.cli.admin.recorded import run
from twisted_mq.cli.admin.calls import ClusterUnknown
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.update_topic import (
    GivenTopicSettings,
    attributes_text,
    merge_order,
    parse_attributes,
    read_settings,
)
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import BrokerData, ClusterInfo, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.flags import perm_text
from twisted_mq.protocol.wire.command import RemotingCommand

CLUSTER = ClusterInfo(
    broker_addr_table={"b": BrokerData(cluster="C", broker_name="b", broker_addrs={0: "b:1", 1: "slave:1"})},
    cluster_addr_table={"C": ["b"]},
)


class NameServer:
    """Knows CLUSTER and one order setting; remembers what was put. Brokers accept every topic."""

    def __init__(self, order: str | None = None) -> None:
        self.order = order
        self.put: list[tuple[str, dict[str, str]]] = []

    def invoke(self, address, command, timeout_seconds):
        answer = RemotingCommand(0)
        if command.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            answer.body = encode_body(CLUSTER)
        elif command.code == RequestCode.GET_KV_CONFIG and self.order is None:
            answer = RemotingCommand(ResponseCode.QUERY_NOT_FOUND, remark="No config item")
        elif command.code == RequestCode.GET_KV_CONFIG:
            answer = RemotingCommand(0, ext_fields={"value": self.order})
        else:
            self.put.append((address, command.ext_fields))
        return defer.succeed(answer)


def test_defaults_are_apaches():
    assert read_settings(CommandLine({"t": "T", "b": "x"})) == GivenTopicSettings("T", 8, 8, 6, 0, False, {})


def test_every_option_reaches_the_settings():
    line = CommandLine(
        {"t": " T ", "r": "1", "w": "2", "p": "4", "o": "TRUE", "u": "true", "s": "true", "a": "+k=v,-x"}
    )
    assert read_settings(line) == GivenTopicSettings("T", 1, 2, 4, 3, True, {"+k": "v", "-x": ""})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"p": "8"}, "Option -p must be 2 (write), 4 (read) or 6 (both), got 8"),
        ({"r": "x"}, "Option -r must be a whole number, got 'x'"),
        ({"a": "k=v"}, "Option -a: 'k=v' must be +key=value or -key"),
        ({"a": "+k"}, "Option -a: '+k' must be +key=value or -key"),
        ({"a": "+k=1,+k=2"}, "Option -a: '+k' is given more than once"),
    ],
)
def test_wrong_values_are_named(values, text):
    with pytest.raises(UsageError) as caught:
        read_settings(CommandLine({"t": "T", **values}))
    assert str(caught.value) == text


def test_attributes_go_out_in_the_order_of_a_java_map():
    assert attributes_text(parse_attributes("+a=1,-b")) == "-b,+a=1"
    assert attributes_text(parse_attributes("")) == ""


def test_permissions_print_as_letters():
    assert [perm_text(perm) for perm in range(8)] == ["---", "--X", "-W-", "-WX", "R--", "R-X", "RW-", "RWX"]


@pytest.mark.parametrize(
    ("held", "merged"),
    [(None, "b:4"), ("", "b:4"), ("b:2", "b:4"), ("a:8", "a:8;b:4"), ("a:8;b:2", "a:8;b:4")],
)
def test_a_brokers_order_entry_replaces_its_old_one(held, merged):
    assert merge_order(held, "b:4") == merged


def test_an_ordered_topic_on_one_broker_keeps_the_entries_of_others():
    server = NameServer("a:8")
    lines, _ = run(server, "updateTopic -b b:1 -t T -w 4 -o true")
    assert lines[:2] == ["set broker orderConf. isOrder=true, orderConf=[b:4]", "create topic to b:1 success."]
    assert server.put[1] == (
        "127.0.0.2:29876",
        {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "a:8;b:4"},
    )


def test_the_first_order_entry_needs_no_older_one():
    server = NameServer()
    run(server, "updateTopic -b b:1 -t T -w 4 -o true")
    assert server.put[1][1]["value"] == "b:4"


def test_a_broker_that_is_not_registered_is_named():
    with pytest.raises(
        CliError, match=r"no broker is registered at other:1; `mqadmin clusterList` lists the addresses"
    ):
        run(NameServer(), "updateTopic -b other:1 -t T -o true")


def test_an_unknown_cluster_is_an_error_that_names_the_known_ones():
    with pytest.raises(ClusterUnknown) as caught:
        run(NameServer(), "updateTopic -c Other -t T")
    assert str(caught.value) == "this name server does not know cluster 'Other'; it knows: C"
    with pytest.raises(ClusterUnknown):
        run(NameServer(), "deleteTopic -c Other -t T")
