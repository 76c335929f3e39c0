"""grpc.reflection.v1 and v1alpha: tools such as grpcurl ask a server for its services and their messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FileDescriptor

from twisted_mq.proxy.grpc.calls import Call, Method, Methods
from twisted_mq.proxy.grpc.descriptors import Service, service
from twisted_mq.proxy.grpc.status import GrpcStatus

TABLE = """\
message ServerReflectionRequest
  1 string host
  3 string file_by_filename in message_request
  4 string file_containing_symbol in message_request
  5 ExtensionRequest file_containing_extension in message_request
  6 string all_extension_numbers_of_type in message_request
  7 string list_services in message_request
message ExtensionRequest
  1 string containing_type
  2 int32 extension_number
message ServerReflectionResponse
  1 string valid_host
  2 ServerReflectionRequest original_request
  4 FileDescriptorResponse file_descriptor_response in message_response
  5 ExtensionNumberResponse all_extension_numbers_response in message_response
  6 ListServiceResponse list_services_response in message_response
  7 ErrorResponse error_response in message_response
message FileDescriptorResponse
  1 repeated bytes file_descriptor_proto
message ExtensionNumberResponse
  1 string base_type_name
  2 repeated int32 extension_number
message ListServiceResponse
  1 repeated ServiceResponse service
message ServiceResponse
  1 string name
message ErrorResponse
  1 int32 error_code
  2 string error_message
"""
INFO = "ServerReflectionInfo"
VERSIONS = tuple(
    service(
        f"grpc/reflection/{version}/reflection.proto",
        f"grpc.reflection.{version}.ServerReflection",
        {INFO: ("ServerReflectionRequest", "ServerReflectionResponse", True, True)},
        TABLE,
    )
    for version in ("v1", "v1alpha")
)


class Reflection:
    """The services of one server, with the files that describe them."""

    def __init__(self, services: Iterable[Service]) -> None:
        self._services = [*services, *VERSIONS]
        self._files: dict[str, FileDescriptor] = {}
        self._symbols: dict[str, FileDescriptor] = {}
        for one in self._services:
            for file in _with_dependencies(one.file):
                self._files[file.name] = file
                self._symbols.update((symbol, file) for symbol in _symbols(file))

    def methods(self) -> Methods:
        """Return the methods by path."""
        return {
            version.method_path(INFO): Method(
                version.request(INFO),
                lambda call, version=version: self._open(call, version),
                takes_stream=True,
                gives_stream=True,
            )
            for version in VERSIONS
        }

    def _open(self, call: Call, version: Service) -> None:
        answer_class = version.message("ServerReflectionResponse")
        call.received = lambda request: call.send(
            answer_class(valid_host=request.host, original_request=request, **self._answer(request))
        )
        call.half_closed = call.finish

    def _answer(self, request: Any) -> dict[str, Any]:
        kind = request.WhichOneof("message_request")
        if kind == "list_services":
            names = sorted(one.name for one in self._services)
            return {"list_services_response": {"service": [{"name": name} for name in names]}}
        if kind in ("file_by_filename", "file_containing_symbol"):
            known = self._files if kind == "file_by_filename" else self._symbols
            file = known.get(getattr(request, kind))
            if file is not None:
                found = [one.serialized_pb for one in _with_dependencies(file)]
                return {"file_descriptor_response": {"file_descriptor_proto": found}}
        if kind == "all_extension_numbers_of_type" and request.all_extension_numbers_of_type in self._symbols:
            return {"all_extension_numbers_response": {"base_type_name": request.all_extension_numbers_of_type}}
        if kind is None:
            error = GrpcStatus.INVALID_ARGUMENT, "the request has no message_request"
        else:
            error = GrpcStatus.NOT_FOUND, f"{kind}: not found"
        return {"error_response": {"error_code": int(error[0]), "error_message": error[1]}}


def _with_dependencies(file: FileDescriptor) -> list[FileDescriptor]:
    """Return a file and the files that it imports."""
    found = {file.name: file}
    for one in file.dependencies:
        found.update((each.name, each) for each in _with_dependencies(one))
    return list(found.values())


def _symbols(file: FileDescriptor) -> Iterator[str]:
    """Yield the full names of what a file declares."""
    for described in file.services_by_name.values():
        yield described.full_name
        yield from (method.full_name for method in described.methods)
    yield from (one.full_name for one in file.enum_types_by_name.values())
    for message in file.message_types_by_name.values():
        yield from _symbols_of(message)


def _symbols_of(message: Descriptor) -> Iterator[str]:
    yield message.full_name
    yield from (one.full_name for one in message.enum_types)
    for nested in message.nested_types:
        yield from _symbols_of(nested)
