"""Options of live queues and of the sink."""

from __future__ import annotations

import inspect
import re

import pytest

from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.access_options import ACCESS_OPTIONS
from twisted_mq.spark.live.bounds import Bound
from twisted_mq.spark.live.cluster import Access
from twisted_mq.spark.live.connection import Dialling
from twisted_mq.spark.live.options import OPTION_NAMES, LiveOptions, live_options
from twisted_mq.spark.live.pulling import PullLimits, PullSelection
from twisted_mq.spark.sink import options as sink
from twisted_mq.spark.sink.sending import SendLimits

NEEDED = {"nameServer": "n:9876", "subscribe": "Orders"}


def test_defaults() -> None:
    assert live_options(NEEDED) == LiveOptions(
        Access(("n:9876",)), None, Bound("endingOffsets", -1), topics=("Orders",)
    )


def test_all_options_are_read() -> None:
    given = {
        "NAMESERVER": "a:1; b:2,[::1]:3", "topic": "A, B", "startingOffsets": "group", "endingTimestamp": "1795216734968",
        "maxOffsetsPerTrigger": "5", "maxBytesPerTrigger": "1m", "minPartitions": "7", "failOnDataLoss": "false",
        "tags": "a || b", "group": "G", "commitOffsets": "true", "readFrom": "slave", "pullMessages": "8",
        "pullsInFlight": "3", "columns": "body,topic", "tries": "2", "timeoutSeconds": "4", "tls": "true",
        "tlsCaFile": "/ca", "accessKey": "ada", "secretKey": "s", "owner": "spark",
        "backfill": "/data/a, s3a://b/store", "brokerName": "a,b",
    }  # fmt: skip
    dialling = Dialling(4, True, "/ca", Credentials("ada", "s"))
    assert live_options(given) == LiveOptions(
        Access(("a:1", "b:2", "[::1]:3"), dialling, from_slaves=True, tries=2),
        Bound("startingOffsets", -2, of_group=True),
        Bound("endingTimestamp", -1, timestamp_ms=1795216734968),
        topics=("A", "B"),
        offsets_per_trigger=5,
        bytes_per_trigger=1 << 20,
        min_partitions=7,
        fail_on_data_loss=False,
        selection=PullSelection("a || b"),
        group="G",
        commit_offsets=True,
        limits=PullLimits(8, 3),
        columns=("body", "topic"),
        stores=("/data/a", "s3a://b/store"),
        broker_names=("a", "b"),
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"startingOffset": "latest"}, "did you mean startingOffsets?"),
        ({"nameServer": "here"}, "here: is not an address of the form host:port"),
        ({"nameServer": " ; "}, "an address is needed"),
        ({"topic": "A"}, "it is set by topic"),
        ({"subscribe": "a b"}, "illegal characters"),
        ({"tags": "||"}, "no tag in the expression"),
        ({"tags": "a", "sql": "b = 1"}, "it is set by tags"),
        ({"sql": " "}, "an expression is needed"),
        ({"startingOffsets": "latest", "startingTimestamp": "1"}, "it is set by startingOffsets"),
        ({"startingOffsets": "soon"}, "offsets must look like"),
        ({"maxOffsetsPerTrigger": "0"}, "above 0"),
        ({"readFrom": "anyone"}, "master or slave is needed"),
        ({"group": "a b"}, "illegal characters"),
        ({"accessKey": "ada"}, "accessKey and secretKey are needed together"),
        ({"columns": "bodi"}, "unknown column"),
        ({"backfill": "/s"}, "option brokerName='': backfill and brokerName are needed together"),
        ({"brokerName": "a"}, "option backfill='': backfill and brokerName are needed together"),
        (
            {"backfill": "/s", "brokerName": "a", "sql": "b = 1"},
            "files cannot be filtered by it: read without backfill",
        ),
        ({"secretKy": "s3cret"}, "option secretKy='...': unknown option, did you mean secretKey"),
    ],
)
def test_wrong_options_say_what_is_wrong(more: dict[str, str], reason: str) -> None:
    with pytest.raises(WrongOption, match=re.escape(reason)):
        live_options({**NEEDED, **more})


@pytest.mark.parametrize(
    ("left_out", "reason"), [("nameServer", "the name server's address"), ("subscribe", "topics are")]
)
def test_needed_options(left_out: str, reason: str) -> None:
    with pytest.raises(WrongOption, match=reason):
        live_options({name: value for name, value in NEEDED.items() if name != left_out})


def test_the_sinks_options() -> None:
    given = {
        "nameServer": "n:1", "topic": "T", "group": "G", "batchMessages": "3", "batchBytes": "1k", "sendsInFlight": "2",
        "checkpointLocation": "/c",
    }  # fmt: skip
    assert sink.sink_options(given) == sink.SinkOptions(Access(("n:1",)), "T", "G", SendLimits(3, 1024, 2))


@pytest.mark.parametrize(
    ("options_class", "names"),
    [
        (LiveOptions, [name for name in OPTION_NAMES if name not in (*ACCESS_OPTIONS, "topic")]),
        (sink.SinkOptions, [name for name in sink.OPTION_NAMES if name not in ACCESS_OPTIONS]),
        (Access, ACCESS_OPTIONS),
    ],
)
def test_every_option_is_documented(options_class: type, names: list[str]) -> None:
    cells = re.findall(r"^\| ([\w, ]+) \|", inspect.getdoc(options_class) or "", re.MULTILINE)
    documented = [name for cell in cells if cell != "option" for name in cell.split(", ")]
    assert sorted(documented) == sorted(names)
