"""Sends that are not awaited."""

from __future__ import annotations

from twisted.internet import defer

from tests.twisted_mq.client.producing.test_producer import SEND, ProducerCase
from twisted_mq.client import ClientStateError, Message, ProducerOptions, SendFailed


class Unawaited(ProducerCase):
    def stored_bodies(self) -> list[bytes]:
        return sorted(one.body for one in self.stored(self.a))

    def test_only_so_many_sends_are_in_flight_and_all_end(self) -> None:
        producer = self.started(ProducerOptions(max_in_flight=10))
        self.run_to_end(producer.send(Message("T", b"first")))
        self.a.silent.add(SEND)
        sends = [producer.send(Message("T", b"%03d" % number)) for number in range(35)]
        self.settle()
        self.assertEqual((len(self.a.headers(SEND)), producer.window.count, producer.window.waiting), (11, 10, 25))
        self.a.silent.clear()
        self.advance(3.1)
        results = [self.failureResultOf(one, SendFailed) for one in sends[:10]]
        self.assertEqual(len(results), 10)
        self.assertEqual([self.successResultOf(one).status.name for one in sends[10:]], ["SEND_OK"] * 25)
        self.assertEqual((producer.window.count, producer.window.bytes, producer.window.waiting), (0, 0, 0))

    def test_timeout_runs_from_when_a_send_is_written(self) -> None:
        """Each of them takes 2 s of the broker's time: the fifth is answered after 10 s."""
        producer = self.started(ProducerOptions(max_in_flight=1))
        self.run_to_end(producer.send(Message("T", b"first")))
        process = self.a.factory.traffic.processors[SEND]

        def slowly(channel: object, request: object) -> object:
            later: defer.Deferred[object] = defer.Deferred()
            self.clock.callLater(2, lambda: later.callback(process(channel, request)))
            return later

        self.a.factory.traffic.processors[SEND] = slowly
        sends = [producer.send(Message("T", b"%d" % number)) for number in range(5)]
        self.advance(10.5)
        self.assertEqual([self.successResultOf(one).status.name for one in sends], ["SEND_OK"] * 5)

    def test_sends_started_in_one_long_turn_of_the_reactor_all_end_well(self) -> None:
        """The loop that starts them takes longer than a send may: no answer could be read meanwhile."""
        for warm in (False, True):
            producer = self.started(ProducerOptions(retry_times=0), instance_name=f"warm {warm}")
            if warm:
                self.run_to_end(producer.send(Message("T", b"first")))
            sends = [producer.send(Message("T", b"x")) for _ in range(20)]
            self.clock.advance(5)
            self.advance(1)
            self.assertEqual([self.successResultOf(one).status.name for one in sends], ["SEND_OK"] * 20)
            self.run_to_end(producer.stop())

    def test_message_is_sent_as_it_was_when_it_was_given(self) -> None:
        producer = self.started(ProducerOptions(max_in_flight=1))
        message = Message("T", b"one", properties={"p": "1"})
        sends = []
        for number in range(3):
            message.body, message.properties["p"] = b"%d" % number, str(number)
            sends.append(producer.send(message))
        message.body = b"changed"
        for one in sends:
            self.run_to_end(one)
        self.assertEqual(self.stored_bodies(), [b"0", b"1", b"2"])
        self.assertEqual(sorted(one.properties["p"] for one in self.stored(self.a)), ["0", "1", "2"])

    def test_stopping_lets_sends_that_wait_for_their_turn_go(self) -> None:
        producer = self.started(ProducerOptions(max_in_flight=2))
        sends = [producer.send(Message("T", b"%03d" % number)) for number in range(50)]
        self.run_to_end(producer.stop())
        self.assertEqual([self.successResultOf(one).status.name for one in sends], ["SEND_OK"] * 50)
        self.assert_no_timers()

    def test_request_that_waits_for_its_reply_takes_no_room(self) -> None:
        producer = self.started(ProducerOptions(max_in_flight=1))
        asking = producer.request(Message("T", b"question"), timeout_seconds=30)
        self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual(producer.window.count, 0)
        asking.addErrback(lambda _: None)
        asking.cancel()

    def test_stop_says_of_each_send_whether_it_may_have_left(self) -> None:
        producer = self.started(ProducerOptions(max_in_flight=1))
        self.run_to_end(producer.send(Message("T", b"first")))
        self.a.silent.add(SEND)
        sends = [producer.send(Message("T", b"x")) for _ in range(2)]
        stopping = self.begin(producer.stop(finish_seconds=1))
        self.advance(1.25)
        self.successResultOf(stopping)
        said = [str(self.failureResultOf(one, ClientStateError).value) for one in sends]
        self.assertIn("the message may have been sent", said[0])
        self.assertIn("not sent", said[1])
        self.assertEqual(len(self.a.headers(SEND)), 2)
        self.a.silent.clear()
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("T", b"again")))
