import attrs
import pytest
from twisted.internet import defer

from tests.twisted_mq.cli.admin.recorded import context, printed, run
from twisted_mq.admin.calls import brokers
from twisted_mq.cli.admin.cluster_list import BASE_HEAD, base_row, more_row, timer_text
from twisted_mq.cli.admin.command_line import parse_command_line
from twisted_mq.cli.admin.registry import find_sub_command
from twisted_mq.protocol.bodies import BrokerData, ClusterInfo, KVTable, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingConnectError

NOW_MS = 1795217250000
FIGURES = {
    "brokerActive": "true",
    "brokerVersionDesc": "V5_3_3",
    "putTps": "0.599880023995201 0.599880023995201 0.599880023995201",
    "getTransferredTps": "0.599880023995201 0.599880023995201 0.599880023995201",
    "sendThreadPoolQueueSize": "0",
    "sendThreadPoolQueueHeadWaitTimeMills": "0",
    "pullThreadPoolQueueSize": "0",
    "pullThreadPoolQueueHeadWaitTimeMills": "0",
    "ackThreadPoolQueueSize": "0",
    "ackThreadPoolQueueHeadWaitTimeMills": "0",
    "pageCacheLockTimeMills": "0",
    "earliestMessageTimeStamp": "1795217217290",
    "commitLogDiskRatio": "0.19",
    "timerReadBehind": "0",
    "timerOffsetBehind": "0",
    "timerCongestNum": "0",
    "timerEnqueueTps": "0.0",
    "timerDequeueTps": "0.0",
    "msgPutTotalTodayNow": "25",
    "msgPutTotalTodayMorning": "0",
    "msgPutTotalYesterdayMorning": "0",
    "msgGetTotalTodayNow": "14",
    "msgGetTotalTodayMorning": "0",
    "msgGetTotalYesterdayMorning": "0",
}
"""Report of the recorded broker (with the rates while clusterList ran)."""

CLUSTER = ClusterInfo(
    broker_addr_table={
        "broker-cap": BrokerData(cluster="CapCluster", broker_name="broker-cap", broker_addrs={0: "127.0.0.2:20911"})
    },
    cluster_addr_table={"CapCluster": ["broker-cap"]},
)


class Servers:
    """A name server that knows CLUSTER, and a broker with FIGURES; no figures: the broker is down."""

    def __init__(self, figures: dict[str, str] | None = None) -> None:
        self._figures = figures

    def invoke(self, address, command, timeout_seconds):
        if command.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            return defer.succeed(RemotingCommand(0, body=encode_body(CLUSTER)))
        if self._figures is None:
            return defer.fail(RemotingConnectError(f"connect to {address} failed: refused"))
        return defer.succeed(RemotingCommand(0, body=encode_body(KVTable(table=self._figures))))


@pytest.mark.parametrize("command", ["clusterList", "clusterList -m", "clusterList -c CapCluster"])
def test_output_is_what_apaches_tool_printed(command):
    wanted = printed(command.replace(" -c CapCluster", ""))
    assert run(Servers(FIGURES), command) == (wanted, [])


def test_an_unknown_cluster_prints_only_the_head():
    assert run(Servers(FIGURES), "clusterList -c Other") == ([BASE_HEAD], [])


def test_a_broker_that_is_down_gets_an_empty_row_and_a_warning():
    lines, warnings = run(Servers(), "clusterList")
    assert lines[1].split() == [
        "CapCluster", "broker-cap", "0", "127.0.0.2:20911", "0.00(,ms)", "0.00(,ms|,ms)", "0-0(0.0w,", "0.0,", "0.0)",
        "0.00", "0.0000", "false",
    ]  # fmt: skip
    assert warnings == ["no metrics from broker 127.0.0.2:20911: connect to 127.0.0.2:20911 failed: refused"]


def test_figures_that_a_broker_does_not_report_print_as_java_prints_them():
    row = base_row("C", "b", 0, "a:1", {"putTps": "2.345"}, NOW_MS)
    assert row.split() == [
        "C", "b", "0", "a:1", "null", "2.35(null,nullms)", "0.00(null,nullms|N,Nms)", "0-0(0.0w,", "0.0,", "0.0)",
        "null", "0.00", "0.0000", "false",
    ]  # fmt: skip


def test_brokers_are_sorted_by_name_and_id():
    cluster = ClusterInfo(
        broker_addr_table={
            "b": BrokerData(cluster="C", broker_name="b", broker_addrs={1: "b1:1", 0: "b0:1"}),
            "a": BrokerData(cluster="C", broker_name="a", broker_addrs={0: "a0:1"}),
        },
        cluster_addr_table={"C": ["b", "a", "gone"]},
    )
    assert list(brokers(cluster, ["C", "X"])) == [("C", "a", 0, "a0:1"), ("C", "b", 0, "b0:1"), ("C", "b", 1, "b1:1")]


def test_timer_figures_behind_a_missing_one_count_as_zero():
    figures = {"timerReadBehind": "3", "timerOffsetBehind": "4", "timerCongestNum": "25000", "timerDequeueTps": "9"}
    assert timer_text(figures) == "3-4(2.5w, 0.0, 0.0)"


def test_message_totals_are_differences():
    totals = {
        "msgPutTotalTodayNow": "100",
        "msgPutTotalTodayMorning": "60",
        "msgPutTotalYesterdayMorning": "10",
        "msgGetTotalTodayNow": "90",
        "msgGetTotalTodayMorning": "50",
        "msgGetTotalYesterdayMorning": "20",
    }
    assert more_row("C", "b", totals).split() == ["C", "b", "50", "30", "40", "40"]
    assert more_row("C", "b", {}).split() == ["C", "b", "0", "0", "0", "0"]


def test_an_interval_prints_again_after_each_pause():
    pauses: list[tuple[float, defer.Deferred[None]]] = []

    def sleep(seconds: float) -> defer.Deferred[None]:
        pauses.append((seconds, defer.Deferred()))
        return pauses[-1][1]

    admin, lines, _ = context(Servers(FIGURES))
    command = find_sub_command("clusterlist")
    assert command is not None
    line = parse_command_line(command.options, ["-i", "7"])
    running = defer.Deferred.fromCoroutine(command.run(attrs.evolve(admin, sleep=sleep), line))
    pauses[0][1].callback(None)
    running.addErrback(lambda reason: reason.trap(defer.CancelledError))
    running.cancel()
    assert ([seconds for seconds, _ in pauses], len(lines)) == ([7, 7], 4)
