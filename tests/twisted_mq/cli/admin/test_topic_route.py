from twisted_mq.cli.admin.topic_route import json_text, table
from twisted_mq.protocol.bodies import BrokerData, QueueData, TopicRouteData

ROUTE = TopicRouteData(
    queue_datas=[
        QueueData(broker_name="b", read_queue_nums=4, write_queue_nums=2, perm=6),
        QueueData(broker_name="a", read_queue_nums=8, write_queue_nums=8, perm=4),
    ],
    broker_datas=[
        BrokerData(cluster="C", broker_name="b", broker_addrs={0: "b:1", 1: "b:2"}),
        BrokerData(cluster="C", broker_name="a", broker_addrs={0: "a:1"}),
    ],
)


def columns(line: str) -> list[str]:
    starts = (0, 46, 79, 130, 141, 153)
    return [line[start:end].strip() for start, end in zip(starts, (*starts[1:], None), strict=True)]


def test_the_list_has_a_line_a_broker_and_the_sums():
    lines = table(ROUTE)
    assert [columns(line) for line in (lines[0], *lines[1:3], lines[4])] == [
        ["#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm"],
        ["C", "a", "{0=a:1}", "8", "8", "4"],
        ["C", "b", "{0=b:1, 1=b:2}", "4", "2", "6"],
        ["Total:", "2", "", "12", "10", ""],
    ]
    assert (lines[3], len(lines)) == ("-" * 158, 5)


def test_json_has_tabs_and_broker_ids_without_quotes():
    lines = json_text(ROUTE).split("\n")
    assert lines[:4] == ["{", '\t"brokerDatas":[', "\t\t{", '\t\t\t"brokerAddrs":{0:"b:1",1:"b:2"']
