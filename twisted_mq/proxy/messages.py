"""The classes of apache.rocketmq.v2's messages, made from the table in `schema` when this module is imported.

They live in a descriptor pool of their own, so that a process may also import Apache's Python client, which brings the
same names. The table takes the place of generated code: nothing is built, in a checkout or a wheel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from twisted_mq.proxy.schema import TABLE

PACKAGE = "apache.rocketmq.v2"
FILE = "apache/rocketmq/v2/service.proto"
SERVICE = f"{PACKAGE}.MessagingService"

SCALARS = {
    "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
    "bool": Field.TYPE_BOOL,
    "int32": Field.TYPE_INT32,
    "int64": Field.TYPE_INT64,
    "float": Field.TYPE_FLOAT,
}
WELL_KNOWN = ("Duration", "Timestamp")
STRING_MAP = "map<string,string>"

METHODS: dict[str, tuple[str, str, bool, bool]] = {
    **{
        name: (f"{name}Request", f"{name}Response", False, name in ("ReceiveMessage", "PullMessage"))
        for name in (
            "QueryRoute", "Heartbeat", "SendMessage", "QueryAssignment", "ReceiveMessage", "AckMessage",
            "ForwardMessageToDeadLetterQueue", "PullMessage", "UpdateOffset", "GetOffset", "QueryOffset",
            "EndTransaction", "NotifyClientTermination", "ChangeInvisibleDuration", "RecallMessage",
            "SyncLiteSubscription",
        )
    },
    "Telemetry": ("TelemetryCommand", "TelemetryCommand", True, True),
}  # fmt: skip
"""Name -> request, answer, whether the client streams, whether the server does."""


def _blocks(table: str) -> Iterator[tuple[str, str, list[str]]]:
    """Kind, name and lines of each message and enum."""
    kind, name, lines = "", "", list[str]()
    for line in table.splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
            continue
        if name:
            yield kind, name, lines
        (kind, name), lines = line.split(), []
    yield kind, name, lines


def _enum(name: str, lines: list[str]) -> descriptor_pb2.EnumDescriptorProto:
    made = descriptor_pb2.EnumDescriptorProto(name=name.rpartition(".")[2])
    for value in " ".join(lines).split(","):
        number, text = value.split()
        made.value.add(name=text, number=int(number))
    return made


class _Messages:
    """Makes message descriptors; `enums` are the names that are no messages."""

    def __init__(self, enums: set[str]) -> None:
        self._enums = enums

    def message(self, name: str, lines: list[str]) -> descriptor_pb2.DescriptorProto:
        made = descriptor_pb2.DescriptorProto(name=name)
        optional = []
        for line in lines:
            number, *words = line.split()
            oneof = words[-1] if words[-2] == "in" else None
            words = words[:-2] if oneof else words
            label = words.pop(0) if words[0] in ("optional", "repeated") else ""
            type_name, field_name = words
            field = made.field.add(name=field_name, number=int(number), label=Field.LABEL_OPTIONAL)
            if label == "repeated":
                field.label = Field.LABEL_REPEATED
            if type_name == STRING_MAP:
                self._string_map(made, field, name)
            else:
                self._type(field, type_name)
            if oneof is not None:
                field.oneof_index = _oneof(made, oneof)
            elif label == "optional":
                optional.append(field)
        for field in optional:  # their oneofs come behind the others
            field.proto3_optional = True
            field.oneof_index = _oneof(made, f"_{field.name}")
        return made

    def _type(self, field: Field, name: str) -> None:
        scalar = SCALARS.get(name)
        if scalar is not None:
            field.type = scalar
        elif name in WELL_KNOWN:
            field.type, field.type_name = Field.TYPE_MESSAGE, f".google.protobuf.{name}"
        else:
            field.type = Field.TYPE_ENUM if name in self._enums else Field.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{name}"

    def _string_map(self, message: descriptor_pb2.DescriptorProto, field: Field, owner: str) -> None:
        entry_name = "".join(part.title() for part in field.name.split("_")) + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for number, part in ((1, "key"), (2, "value")):
            entry.field.add(name=part, number=number, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
        field.label, field.type = Field.LABEL_REPEATED, Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{owner}.{entry_name}"


def _oneof(message: descriptor_pb2.DescriptorProto, name: str) -> int:
    names = [one.name for one in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        names.append(name)
    return names.index(name)


def _file() -> descriptor_pb2.FileDescriptorProto:
    made = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3")
    made.dependency.extend([duration_pb2.DESCRIPTOR.name, timestamp_pb2.DESCRIPTOR.name])
    blocks = list(_blocks(TABLE))
    messages = _Messages({name for kind, name, _ in blocks if kind == "enum"})
    made.message_type.extend(messages.message(name, lines) for kind, name, lines in blocks if kind == "message")
    by_name = {message.name: message for message in made.message_type}
    for kind, name, lines in blocks:
        if kind == "enum":
            owner = name.rpartition(".")[0]
            (by_name[owner] if owner else made).enum_type.append(_enum(name, lines))
    service = made.service.add(name=SERVICE.rpartition(".")[2])
    for name, (request, answer, client_streams, server_streams) in METHODS.items():
        service.method.add(
            name=name,
            input_type=f".{PACKAGE}.{request}",
            output_type=f".{PACKAGE}.{answer}",
            client_streaming=client_streams,
            server_streaming=server_streams,
        )
    return made


POOL = DescriptorPool()
for _known in (duration_pb2, timestamp_pb2):
    POOL.AddSerializedFile(_known.DESCRIPTOR.serialized_pb)
POOL.AddSerializedFile(_file().SerializeToString())
DESCRIPTOR = POOL.FindFileByName(FILE)


def message_class(name: str) -> type[Any]:
    """The class of a message. Raises KeyError for a name that the table does not have."""
    made: type[Any] = GetMessageClass(DESCRIPTOR.message_types_by_name[name])
    return made


def __getattr__(name: str) -> Any:
    """Messages and enums by name: `messages.Resource`, `messages.Code`."""
    if name in DESCRIPTOR.message_types_by_name:
        made = message_class(name)
    elif name in DESCRIPTOR.enum_types_by_name:
        from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

        made = EnumTypeWrapper(DESCRIPTOR.enum_types_by_name[name])
    else:
        raise AttributeError(name)
    globals()[name] = made
    return made
