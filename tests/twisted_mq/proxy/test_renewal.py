"""Messages of push consumers stay invisible while their client has them, on a virtual clock."""

from __future__ import annotations

import attrs
from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.handles import Handle
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.renewal import MINUTE_MS, Renewal

KEY = ("audit", "M1", "handle")
CLEARED_MS = 1000


class RenewalTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.changed: list[int] = []
        self.handles: list[int] = []
        """The pop times of the handles whose times were changed."""
        self.gate: defer.Deferred[None] = defer.succeed(None)
        parts = Parts(ProxyOptions(), None, self.clock, 1)  # type: ignore[arg-type]
        self.renewal = Renewal(parts, self.change)
        self.client = GrpcClient("id", "PYTHON", ("10.0.0.1", 1), b"", self.clock)
        receipt = Receipt.parse("0 0 60000 0 0 broker-a 0 0")
        self.renewal.add(self.client, "Orders", KEY, Handle(receipt, 0))

    async def change(self, client: GrpcClient, topic: str, group: str, handle: Handle, ms: int) -> Handle:
        self.changed.append(ms)
        await self.gate
        self.handles.append(handle.receipt.pop_time)
        now_ms = int(self.clock.seconds() * 1000)
        return attrs.evolve(handle, receipt=attrs.evolve(handle.receipt, pop_time=now_ms, invisible_time=ms))

    def test_message_that_was_taken_is_renewed_shortly_before_its_time_is_over(self) -> None:
        self.renewal.taken(self.client, [KEY], taken=True)
        self.clock.advance(50)
        self.renewal.look()
        self.assertEqual(self.changed, [])
        self.clock.advance(0.001)
        self.renewal.look()
        self.assertEqual((self.changed, len(self.renewal)), ([MINUTE_MS], 1))

    def test_message_that_is_not_known_to_be_taken_comes_back_when_its_time_is_over(self) -> None:
        self.clock.advance(59.9)
        self.renewal.look()
        self.assertEqual(len(self.renewal), 1)
        self.clock.advance(0.1)
        self.renewal.look()
        self.assertEqual((self.changed, len(self.renewal)), ([], 0))

    def test_message_that_was_not_taken_comes_back_soon(self) -> None:
        self.renewal.taken(self.client, [KEY], taken=False)
        self.assertEqual((self.changed, len(self.renewal)), ([CLEARED_MS], 0))

    def test_message_that_was_acknowledged_meanwhile_is_left_alone(self) -> None:
        self.assertIsNotNone(self.renewal.remove(self.client, *KEY))
        for taken in (True, False):
            self.renewal.taken(self.client, [KEY], taken=taken)
        self.assertEqual((self.changed, len(self.renewal)), ([], 0))

    def test_message_whose_acknowledgement_failed_keeps_its_newest_handle_for_its_time(self) -> None:
        self.renewal.taken(self.client, [KEY], taken=True)
        self.clock.advance(51)
        self.renewal.look()
        removed = self.renewal.remove(self.client, *KEY)
        assert removed is not None
        self.renewal.put_back(self.client, *KEY[1:], removed)
        self.clock.advance(59.9)
        self.renewal.look()
        self.assertEqual((self.changed, len(self.renewal)), ([MINUTE_MS], 1))
        found = self.renewal.remove(self.client, *KEY)
        assert found is not None
        self.assertEqual(found.handle.receipt.pop_time, 51_000)
        self.renewal.put_back(self.client, *KEY[1:], found)
        self.clock.advance(0.1)
        self.renewal.look()
        self.assertEqual((self.changed, len(self.renewal)), ([MINUTE_MS], 0))

    def test_message_whose_acknowledgement_failed_is_not_changed_when_its_client_goes(self) -> None:
        """A broker may have it as acknowledged: a change would bring it back."""
        removed = self.renewal.remove(self.client, *KEY)
        assert removed is not None
        self.renewal.put_back(self.client, *KEY[1:], removed)
        self.renewal.forget(self.client)
        self.assertEqual((self.changed, len(self.renewal)), ([], 0))

    def test_message_that_is_being_renewed_when_its_client_goes_comes_back_by_its_newest_handle(self) -> None:
        self.renewal.taken(self.client, [KEY], taken=True)
        self.clock.advance(51)
        self.gate = defer.Deferred()
        self.renewal.look()
        self.renewal.forget(self.client)
        self.assertEqual((self.changed, self.handles), ([MINUTE_MS], []))
        self.gate.callback(None)
        self.assertEqual((self.changed, self.handles), ([MINUTE_MS, CLEARED_MS], [0, 51_000]))

    def test_messages_of_a_client_that_is_gone_come_back_once(self) -> None:
        self.renewal.forget(self.client)
        self.renewal.taken(self.client, [KEY], taken=False)
        self.assertEqual((self.changed, len(self.renewal)), ([CLEARED_MS], 0))
