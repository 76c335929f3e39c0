"""Which registered slaves a returning master asks, and how long it waits for those that nothing proves."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer
from twisted.logger import LogLevel, capturedLogs, formatEvent

from tests.twisted_mq.broker.acting.online import SLAVE_AT, TOPIC, OnlineCase
from twisted_mq.broker.acting.asked_slaves import UNPROVEN_SECONDS
from twisted_mq.broker.ha.accept_service import MAX_SLAVES
from twisted_mq.protocol.codes import RequestCode

STRANGER = "10.9.9.9:20911"
LIMIT = int(UNPROVEN_SECONDS)
FIVE_MINUTES = 300


class AskedSlavesTests(OnlineCase):
    """A stranger that does not answer is registered beside the slave."""

    def setUp(self) -> None:
        self.warnings: list[str] = []

    def begin(self, members: dict[int, str] | None = None, **options: Any) -> defer.Deferred[None]:
        with capturedLogs() as events:
            self.prepare(**options)
            self.group.members = members or {1: SLAVE_AT, 2: STRANGER}
            self.group.offsets = {f"{TOPIC}@G": {0: 10}}
            self.group.away = {STRANGER}
            done = self.ask()
        self.warned(events)
        return done

    def warned(self, events: list[Any]) -> None:
        self.warnings += [formatEvent(event) for event in events if event["log_level"] is LogLevel.warn]

    def pass_time(self, seconds: int) -> None:
        with capturedLogs() as events:
            for _ in range(seconds):
                self.broker.clock.advance(1)
        self.warned(events)

    def left_out(self) -> list[str]:
        """Return the warnings that name a slave that is not asked."""
        return [line for line in self.warnings if line.startswith("slave not asked")]

    def test_only_allowed_slaves_are_asked_and_a_line_names_another(self) -> None:
        self.successResultOf(self.begin(ha_allowed_slaves=" 10.0.0.3 ,10.0.0.1"))
        self.assertEqual((self.offset("G"), self.group.asked_of(STRANGER)), (10, []))
        (line,) = self.warnings
        self.assertIn(f"slave=2 at {STRANGER}: haAllowedSlaves does not name its host", line)

    def test_allowed_slave_is_waited_for_without_end(self) -> None:
        done = self.begin(ha_allowed_slaves="10.0.0.3,10.9.9.9")
        self.pass_time(FIVE_MINUTES)
        self.assertNoResult(done)
        self.group.away = set()
        self.pass_time(1)
        self.successResultOf(done)

    def test_slaves_that_share_the_secret_of_registrations_are_waited_for(self) -> None:
        done = self.begin(registration_shared_secret="long and random")
        self.pass_time(FIVE_MINUTES)
        self.assertNoResult(done)
        self.assertEqual(self.left_out(), [])

    def test_stranger_delays_a_master_without_secrets_for_a_minute_and_the_start_warns_of_it(self) -> None:
        done = self.begin()
        self.assertIn("every host can register as a slave of this master", self.warnings[0])
        self.assertEqual(self.offset("G"), 10)
        self.pass_time(LIMIT - 1)
        self.assertNoResult(done)
        self.assertEqual(self.left_out(), [])
        self.pass_time(2)
        self.successResultOf(done)
        self.assertEqual(
            [line.split("slave=")[1][:20] for line in self.left_out()], ["1 at 10.0.0.3:20911:", "2 at 10.9.9.9:20911:"]
        )

    def test_under_access_control_a_slave_that_nothing_proves_is_not_asked(self) -> None:
        self.successResultOf(self.begin(authorization_enabled=True, ha_open_under_access_control=True))
        self.assertEqual((self.offset("G"), self.group.asked_of(SLAVE_AT), len(self.left_out())), (None, [], 2))

    def test_slave_is_told_where_its_master_is_and_asked_once_its_link_has_proven_the_secret(self) -> None:
        done = self.begin({1: SLAVE_AT}, ha_shared_secret="long and random")
        self.pass_time(3)
        self.assertEqual(set(self.group.asked_of(SLAVE_AT)), {RequestCode.EXCHANGE_BROKER_HA_INFO})
        self.assertEqual(self.offset("G"), None)
        self.broker.controller.ha.accept.secret_proven("10.0.0.3")
        self.pass_time(1)
        self.successResultOf(done)
        self.assertEqual(self.offset("G"), 10)

    def test_host_that_never_proves_the_secret_is_left_out(self) -> None:
        self.group_of_stranger = {1: STRANGER, 2: SLAVE_AT}
        done = self.begin(self.group_of_stranger, ha_shared_secret="long and random")
        self.broker.controller.ha.accept.secret_proven("10.0.0.3")
        self.pass_time(1)
        self.assertEqual(self.offset("G"), 10)
        self.pass_time(LIMIT)
        self.successResultOf(done)
        self.assertEqual(set(self.group.asked_of(STRANGER)), {RequestCode.EXCHANGE_BROKER_HA_INFO})
        self.assertEqual(len(self.left_out()), 1)

    def test_many_strangers_do_not_keep_the_slave_from_being_asked(self) -> None:
        strangers = {number: f"10.9.9.9:{number}" for number in range(2, 500)}
        done = self.begin({1: SLAVE_AT, **strangers})
        self.assertEqual(self.offset("G"), 10)
        self.group.away = set(strangers.values())
        self.pass_time(LIMIT + 1)
        self.successResultOf(done)
        self.assertEqual(len({address for address, _ in self.group.asked}), MAX_SLAVES + 1)
        self.assertEqual(len(self.left_out()), MAX_SLAVES)

    def test_stop_ends_the_questions(self) -> None:
        done = self.begin(ha_allowed_slaves="10.0.0.3,10.9.9.9")
        done.cancel()
        self.failureResultOf(done, defer.CancelledError)
