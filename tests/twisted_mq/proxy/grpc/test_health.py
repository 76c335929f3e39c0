"""Tests of grpc.health.v1 on a virtual clock."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.support.grpc_wire import Wire
from twisted_mq.proxy.grpc.health import HEALTH, NOT_SERVING, SERVICE_UNKNOWN, SERVING, Health
from twisted_mq.proxy.grpc.status import GrpcStatus

Request, Answer = HEALTH.message("HealthCheckRequest"), HEALTH.message("HealthCheckResponse")
CHECK, WATCH = HEALTH.method_path("Check"), HEALTH.method_path("Watch")


class HealthTests(SynchronousTestCase):
    def setUp(self):
        self.health = Health(["test.Echo"])
        self.wire = Wire(dict(self.health.methods()))

    def check(self, name):
        stream = self.wire.call(CHECK, Request(service=name))
        return [one.status for one in self.wire.answers(stream, Answer)], self.wire.status(stream)[0]

    def watched(self, stream):
        self.wire.receive()
        return [one.status for one in self.wire.answers(stream, Answer)]

    def test_server_and_its_service_are_serving_until_it_stops(self):
        self.assertEqual(CHECK, "/grpc.health.v1.Health/Check")
        self.assertEqual([self.check(name) for name in ("", "test.Echo")], [([SERVING], GrpcStatus.OK)] * 2)
        self.health.stop()
        self.assertEqual(self.check("test.Echo"), ([NOT_SERVING], GrpcStatus.OK))

    def test_unknown_service_is_not_found(self):
        self.assertEqual(self.check("other"), ([], GrpcStatus.NOT_FOUND))

    def test_watch_tells_the_status_now_and_when_the_server_stops(self):
        known, unknown = (self.wire.call(WATCH, Request(service=name)) for name in ("test.Echo", "other"))
        self.assertEqual((self.watched(known), self.watched(unknown)), ([SERVING], [SERVICE_UNKNOWN]))
        self.assertIsNone(self.wire.status(known))
        self.health.stop()
        self.assertEqual(self.watched(known), [SERVING, NOT_SERVING])

    def test_watch_that_its_client_ended_is_forgotten(self):
        stream = self.wire.call(WATCH, Request())
        self.wire.client.reset_stream(stream)
        self.wire.exchange()
        self.assertEqual((self.wire.shared.calls, self.health._watching), (0, {}))
