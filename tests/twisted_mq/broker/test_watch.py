"""Lines for operators: one when a condition begins, with what to do, and one when it is over."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from tests.support.broker import BrokerInMemory
from tests.support.certificates import Authority
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_send import send
from tests.twisted_mq.broker.test_broker_service import SEND, BrokerServiceCase
from twisted_mq.broker.metrics.lag import Lag
from twisted_mq.broker.watch import (
    BEHIND_MS,
    MOST_NAMED,
    ClockWatch,
    Watch,
    ending_certificate,
    full_budgets,
    lagging,
    look_at_lag,
    slow_disk,
    slow_slaves,
)
from twisted_mq.config.tls_options import TlsMode
from twisted_mq.protocol.bodies import HAConnectionRuntimeInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.remoting.budget import Budget
from twisted_mq.storage.config import FlushDiskType

NOW = datetime.datetime(2026, 11, 25, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


def lines(events: list[dict[str, Any]]) -> list[str]:
    return [event["log_format"].format(**event) for event in events if "log_format" in event]


def test_a_condition_is_told_when_it_begins_and_when_it_is_over() -> None:
    watch = Watch()
    with capturedLogs() as said:
        for found in ({"a": "line of a"}, {"a": "line of a, worse"}, {"a": "x", "b": "line of b"}, {"b": "y"}, {}):
            watch.note("kind", found)
        watch.note("other", {"a": "another kind"})
    assert lines(said) == ["line of a", "line of b", "over: a", "over: b", "another kind"]


def test_each_line_names_figures_and_what_to_do() -> None:
    behind = HAConnectionRuntimeInfo(addr="10.0.0.2:5", diff=300)
    told = [
        *slow_disk(2.34, "/data/commitlog").values(),
        *slow_slaves([behind, HAConnectionRuntimeInfo(addr="10.0.0.3:5", diff=200)], 256).values(),
        *full_budgets({"maxUnsentBytes": (900, 1000), "maxHeldBytes": (100, 1000)}).values(),
        *ending_certificate("/etc/cert.pem", NOW + 9 * DAY, NOW.timestamp()).values(),
        *lagging([Lag("audit", "Orders", oldest_unread_ms=0)], 7 * 60_000).values(),
    ]
    found = [(line.partition(":")[0], line.partition(":")[2].strip()[:40]) for line in told]
    assert found == [
        ("slow disk", "a flush of /data/commitlog took 2.3 s; s"),
        ("slow slave", "10.0.0.2:5 has 300 bytes less than this "),
        ("memory", "peers use 900 of 1,000 bytes (maxUnsentB"),
        ("certificate", "/etc/cert.pem ends on 2026-12-04 00:00 U"),
        ("group behind", "audit is 7 minutes behind on Orders. Che"),
    ]


def test_what_is_well_is_no_line() -> None:
    assert slow_disk(0.9, "/data") == {}
    assert full_budgets({"maxUnsentBytes": (799, 1000), "off": (5, 0)}) == {}
    assert ending_certificate("/etc/cert.pem", NOW + 31 * DAY, NOW.timestamp()) == {}
    assert lagging([Lag("audit", "Orders", oldest_unread_ms=0), Lag("new", "Orders")], BEHIND_MS) == {}
    assert lagging([Lag("CID_RMQ_SYS_X", "Orders", oldest_unread_ms=0)], 7 * 60_000) == {}


def test_the_worst_groups_are_named_and_the_others_counted() -> None:
    found = lagging([Lag(f"g{number}", "T", oldest_unread_ms=number * 60_000) for number in range(30)], 60 * 60_000)
    assert list(found)[:2] == ["group g0 on T", "group g1 on T"]
    assert len(found) == MOST_NAMED + 1
    assert found["more groups"].startswith("groups behind: 20 others")


@pytest.mark.parametrize("step", [3600.0, -5.0])
def test_a_step_of_the_clock_is_told_once(step: float) -> None:
    clock, apart = Clock(), 1000.0
    steps = ClockWatch(lambda: int((clock.seconds() + apart) * 1000), clock.seconds)
    with capturedLogs() as said:
        clock.advance(30)
        steps.look()
        apart += step
        for _ in range(3):
            clock.advance(30)
            steps.look()
    (line,) = lines(said)
    assert line.startswith(f"clock step: the time of day jumped by {step:+.1f} s. Timers are not affected")


def test_a_broker_tells_which_group_is_behind_and_when_it_is_not_any_more() -> None:
    broker, watch = BrokerInMemory(), Watch()
    peer = broker.connect()
    send(peer)
    heartbeat(peer, "G", "T")
    commit = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "0"}
    peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    with capturedLogs() as said:
        broker.clock.advance(BEHIND_MS / 1000 + 61)
        list(look_at_lag(broker.controller, watch))
        peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit | {"commitOffset": "1"})
        list(look_at_lag(broker.controller, watch))
    told = [line for line in lines(said) if "group" in line]
    assert told[0].startswith("group behind: G is 6 minutes behind on T.")
    assert told[1] == "over: group G on T"


class WatchedBrokerTest(BrokerServiceCase):
    async def test_a_slow_flush_and_full_memory_are_told(self) -> None:
        broker = await self.start()
        await self.ask(broker.port, RequestCode.SEND_MESSAGE_V2, SEND, b"x")
        broker._work.watch.look()
        self.assertEqual(self.said("slow disk"), [])
        broker._parts.state.store._flush._longest_flush = 1.5  # type: ignore[union-attr]
        taken = [broker.options.max_unsent_bytes]
        self.patch(Budget, "unsent_bytes", property(lambda budget: taken[0]))
        broker._work.watch.look()
        (line,) = self.said("slow disk: a flush of")
        self.assertIn("took 1.5 s", line)
        self.assertEqual(len(self.said("(maxUnsentBytes)")), 1)
        taken[0] = 0
        broker._work.watch.look()
        self.assertEqual(len(self.said("over: ")), 2)

    async def test_the_longest_flush_is_measured(self) -> None:
        broker = await self.start(flush_disk_type=FlushDiskType.SYNC_FLUSH)
        broker._parts.state.store.take_longest_flush()  # type: ignore[union-attr]
        await self.ask(broker.port, RequestCode.SEND_MESSAGE_V2, SEND, b"x")
        self.assertGreater(broker._parts.state.store.take_longest_flush(), 0)  # type: ignore[union-attr]

    async def test_a_certificate_that_ends_soon_is_told_and_a_new_one_ends_it(self) -> None:
        authority = Authority(self.path.parent / f"{self.path.name}-ca")
        files = authority.issue("broker", (-1, 20))
        tls = {"tls_test_mode_enable": False, "tls_server_mode": TlsMode.PERMISSIVE}
        broker = await self.start(tls_server_cert_path=files.certificate, tls_server_key_path=files.key, **tls)
        broker._parts.encryption.load()  # type: ignore[union-attr]
        broker._work.watch.look()
        (line,) = self.said("certificate: ")
        self.assertRegex(line, r"ends on \d{4}-\d\d-\d\d \d\d:\d\d UTC, in (19|20) days")
        authority.issue("broker", (-1, 200))
        broker._parts.encryption.look()  # type: ignore[union-attr]
        broker._work.watch.look()
        self.assertEqual(len(self.said(f"over: certificate {files.certificate}")), 1)
