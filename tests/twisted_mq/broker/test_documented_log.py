"""Each line of the page's part "Read the log" is one that a broker writes: made here by what logs it, with the page's values."""

from __future__ import annotations

import datetime
import socket
from pathlib import Path

from twisted.internet.task import Clock

from tests.twisted_mq.broker.test_broker_service import BrokerServiceCase
from twisted_mq.broker.metrics.lag import Lag
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.watch import (
    BEHIND_MS,
    MOST_NAMED,
    NEARLY_ALL,
    SLOW_FLUSH_SECONDS,
    SOON_DAYS,
    ClockWatch,
    Lines,
    Watch,
    ending_certificate,
    full_budgets,
    lagging,
    slow_disk,
    slow_slaves,
)
from twisted_mq.protocol.bodies import HAConnectionRuntimeInfo
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.retention import DiskUsage

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "watch-servers.md"
PART = PAGE.read_text().partition("## Read the log\n")[2].partition("\n## ")[0]
DOCUMENTED = PART.partition("```text\n")[2].partition("```")[0].splitlines()
ENDS = datetime.datetime(2026, 12, 4, tzinfo=datetime.UTC)
NAME_SERVER = "10.0.0.9:9876"
MINUTE_MS = 60_000


def watched() -> dict[str, Lines]:
    """Make the lines of a broker with the page's values, by kind."""
    now_seconds = (ENDS - datetime.timedelta(days=9, hours=5)).timestamp()
    slave = HAConnectionRuntimeInfo(addr="10.0.0.2:43210", diff=412_316_860)
    budgets = {"maxUnsentBytes": (450_000_000, BrokerOptions().max_unsent_bytes)}
    return {
        "disk": slow_disk(2.34, "/var/lib/rocketmq/store/commitlog"),
        "slaves": slow_slaves([slave], BrokerOptions().ha_max_gap_not_in_sync),
        "lag": lagging([Lag("audit", "Orders", oldest_unread_ms=0)], 7 * MINUTE_MS + 1),
        "certificate": ending_certificate("/etc/rocketmq/server.pem", ENDS, now_seconds),
        "memory": full_budgets(budgets),
    }


class DocumentedLogTest(BrokerServiceCase):
    def test_conditions_begin_and_end_with_the_pages_lines(self) -> None:
        watch = Watch()
        for kind, lines in watched().items():
            watch.note(kind, lines)
        watch.note("disk", {})
        self.assertEqual(len(self.lines), len(watched()) + 1)
        self.assertEqual(set(self.lines) - set(DOCUMENTED), set())

    def test_a_step_of_the_clock(self) -> None:
        clock, steps = Clock(), [1000.0]
        look = ClockWatch(lambda: int((clock.seconds() + steps[0]) * 1000), clock.seconds)
        steps[0] -= 3.2
        look.look()
        self.assertEqual([line for line in self.lines if line in DOCUMENTED], self.lines)
        self.assertEqual(len(self.lines), 1)

    async def test_a_full_disk(self) -> None:
        broker = await self.start()
        store = broker.controller.store
        assert isinstance(store, FileMessageStore)
        with self.assertLogs("twisted_mq.storage.retention") as logged:
            store.retention.expire_log(0, 4, DiskUsage(0.91, 0.91))
        self.assertIn(logged.records[0].getMessage(), DOCUMENTED)

    async def test_a_name_server_that_goes_and_comes(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        address = f"127.0.0.1:{port}"
        await self.start(namesrv_addr=address)
        await self.until(lambda: self.said(f"name server {address} not reached"))
        self.namesrv(port)
        await self.until(lambda: self.said(f"name server {address} is back"))
        told = {line.replace(address, NAME_SERVER) for line in self.said(f"name server {address}")}
        self.assertEqual(told, {line for line in DOCUMENTED if NAME_SERVER in line})

    def test_no_line_of_the_page_is_left_out_here(self) -> None:
        ours = ("clock step", "disk full", f"name server {NAME_SERVER}", "over: slow disk")
        made = {line for lines in watched().values() for line in lines.values()}
        rest = [line for line in DOCUMENTED if line not in made]
        self.assertEqual(sorted({next(one for one in ours if line.startswith(one)) for line in rest}), sorted(ours))
        self.assertEqual(len(DOCUMENTED), len(set(DOCUMENTED)))

    def test_limits_and_times_that_the_page_names(self) -> None:
        self.assertEqual(
            (SLOW_FLUSH_SECONDS, BEHIND_MS, NEARLY_ALL, SOON_DAYS, MOST_NAMED), (1, 5 * MINUTE_MS, 0.8, 30, 10)
        )
        text = " ".join(PART.split())
        for words in ("slow from 1 s on", "five minutes", "80 % of a limit", "30 days before", "At most ten groups"):
            self.assertIn(words, text)
