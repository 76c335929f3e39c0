"""Tests of grpc.reflection.v1 and v1alpha: a client that knows nothing but the server makes a call."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from twisted.trial.unittest import SynchronousTestCase

from tests.support.grpc_wire import Wire
from twisted_mq.proxy.grpc.health import HEALTH, Health
from twisted_mq.proxy.grpc.reflection import INFO, VERSIONS, Reflection
from twisted_mq.proxy.grpc.status import GrpcStatus
from twisted_mq.proxy.messages import MESSAGING

ALL = [
    "apache.rocketmq.v2.MessagingService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
]


class ReflectionTests(SynchronousTestCase):
    def setUp(self):
        health = Health([])
        self.wire = Wire({**Reflection([MESSAGING, HEALTH]).methods(), **health.methods()})

    def ask(self, version=VERSIONS[0], **asked):
        stream = self.wire.call(version.method_path(INFO), version.request(INFO)(host="h", **asked))
        [answer] = self.wire.answers(stream, version.message("ServerReflectionResponse"))
        self.assertEqual((self.wire.status(stream)[0], answer.valid_host), (GrpcStatus.OK, "h"))
        self.assertEqual(answer.original_request, version.request(INFO)(host="h", **asked))
        return answer

    def files(self, **asked):
        found = self.ask(**asked).file_descriptor_response.file_descriptor_proto
        return {one.name: one for one in map(FileDescriptorProto.FromString, found)}

    def test_both_versions_list_the_services(self):
        for version in VERSIONS:
            answer = self.ask(version, list_services="*")
            self.assertEqual([one.name for one in answer.list_services_response.service], ALL)

    def test_client_learns_a_method_from_the_server_and_calls_it(self):
        pool = DescriptorPool()
        for file in self.files(file_containing_symbol="grpc.health.v1.Health").values():
            pool.Add(file)
        method = pool.FindServiceByName("grpc.health.v1.Health").FindMethodByName("Check")
        request = GetMessageClass(method.input_type)(service="")
        stream = self.wire.call("/grpc.health.v1.Health/Check", request)
        [answer] = self.wire.answers(stream, GetMessageClass(method.output_type))
        self.assertEqual(str(answer), "status: SERVING\n")

    def test_files_of_the_messaging_service_have_all_that_it_needs(self):
        by_symbol = self.files(file_containing_symbol="apache.rocketmq.v2.MessagingService.SendMessage")
        self.assertEqual(
            sorted(by_symbol),
            ["apache/rocketmq/v2/service.proto", "google/protobuf/duration.proto", "google/protobuf/timestamp.proto"],
        )
        for asked in (
            {"file_by_filename": "apache/rocketmq/v2/service.proto"},
            {"file_containing_symbol": "apache.rocketmq.v2.Code"},
            {"file_containing_symbol": "apache.rocketmq.v2.OffsetOption.Policy"},
        ):
            self.setUp()  # with windows of its own
            self.assertEqual(self.files(**asked), by_symbol)

    def test_what_is_not_there_is_an_error_in_the_answer(self):
        for asked, code in (
            ({"file_containing_symbol": "no.such"}, GrpcStatus.NOT_FOUND),
            ({"file_by_filename": "no.proto"}, GrpcStatus.NOT_FOUND),
            ({"file_containing_extension": {"containing_type": "x"}}, GrpcStatus.NOT_FOUND),
            ({"all_extension_numbers_of_type": "no.such"}, GrpcStatus.NOT_FOUND),
            ({}, GrpcStatus.INVALID_ARGUMENT),
        ):
            self.assertEqual(self.ask(**asked).error_response.error_code, code, asked)
        known = self.ask(all_extension_numbers_of_type="apache.rocketmq.v2.Message")
        self.assertEqual(list(known.all_extension_numbers_response.extension_number), [])
        self.assertEqual(known.WhichOneof("message_response"), "all_extension_numbers_response")

    def test_one_stream_answers_many_requests_in_order(self):
        version = VERSIONS[1]
        kind = version.request(INFO)
        stream = self.wire.call(version.method_path(INFO), kind(list_services="1"), kind(list_services="2"), end=False)
        answers = self.wire.answers(stream, version.message("ServerReflectionResponse"))
        self.assertEqual([one.original_request.list_services for one in answers], ["1", "2"])
        self.assertIsNone(self.wire.status(stream))
