"""Makes protobuf's classes from a table of messages and enums. The table takes the place of generated code.

A table's lines at the margin begin a message or an enum. A message's lines are: number, "optional" or "repeated" where it is
so, type, name, and "in" with the oneof that the field is in. An enum's lines are numbers and names, separated by commas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

SCALARS = {
    "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
    "bool": Field.TYPE_BOOL,
    "int32": Field.TYPE_INT32,
    "int64": Field.TYPE_INT64,
    "float": Field.TYPE_FLOAT,
}
WELL_KNOWN = {"Duration": duration_pb2.DESCRIPTOR, "Timestamp": timestamp_pb2.DESCRIPTOR}
STRING_MAP = "map<string,string>"

MethodTypes = tuple[str, str, bool, bool]
"""Request, answer, whether the client streams, whether the server does."""


@attrs.frozen
class Service:
    """A service with its messages. `name` is the full name, `path` the name of its .proto file."""

    path: str
    name: str
    methods: Mapping[str, MethodTypes]
    file: FileDescriptor

    def message(self, name: str) -> type[Any]:
        """Return the class of a message. Raises KeyError for a name that the table does not have."""
        made: type[Any] = GetMessageClass(self.file.message_types_by_name[name])
        return made

    def enum(self, name: str) -> Any:
        """Return an enum with its values as attributes. Raises KeyError for a name that the table does not have."""
        return EnumTypeWrapper(self.file.enum_types_by_name[name])

    def request(self, method: str) -> type[Any]:
        """Return the class of a method's requests. Raises KeyError."""
        return self.message(self.methods[method][0])

    def method_path(self, method: str) -> str:
        """Return the path of a method in HTTP/2's headers."""
        return f"/{self.name}/{method}"


def service(path: str, name: str, methods: Mapping[str, MethodTypes], table: str) -> Service:
    """Make a service's classes. They live in a pool of their own: another package may bring the same names."""
    pool = DescriptorPool()
    file = _file(path, name, methods, table)
    for known in WELL_KNOWN.values():
        if known.name in file.dependency:
            pool.AddSerializedFile(known.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return Service(path, name, methods, pool.FindFileByName(path))


def _file(path: str, name: str, methods: Mapping[str, MethodTypes], table: str) -> FileDescriptorProto:
    package = name.rpartition(".")[0]
    made = FileDescriptorProto(name=path, package=package, syntax="proto3")
    blocks = list(_blocks(table))
    messages = _Messages(package, {name for kind, name, _ in blocks if kind == "enum"})
    made.message_type.extend(messages.message(name, lines) for kind, name, lines in blocks if kind == "message")
    made.dependency.extend(sorted(messages.dependencies))
    by_name = {message.name: message for message in made.message_type}
    for kind, block, lines in blocks:
        if kind == "enum":
            owner = block.rpartition(".")[0]
            (by_name[owner] if owner else made).enum_type.append(_enum(block, lines))
    described = made.service.add(name=name.rpartition(".")[2])
    for method, (request, answer, client_streams, server_streams) in methods.items():
        described.method.add(
            name=method,
            input_type=f".{package}.{request}",
            output_type=f".{package}.{answer}",
            client_streaming=client_streams,
            server_streaming=server_streams,
        )
    return made


def _blocks(table: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield kind, name and lines of each message and enum."""
    kind, name, lines = "", "", list[str]()
    for line in table.splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
            continue
        if name:
            yield kind, name, lines
        (kind, name), lines = line.split(), []
    yield kind, name, lines


def _enum(name: str, lines: Iterable[str]) -> descriptor_pb2.EnumDescriptorProto:
    made = descriptor_pb2.EnumDescriptorProto(name=name.rpartition(".")[2])
    for value in " ".join(lines).split(","):
        number, text = value.split()
        made.value.add(name=text, number=int(number))
    return made


class _Messages:
    """Makes message descriptors of one package. `dependencies` are the files of the well-known types that they use."""

    def __init__(self, package: str, enums: set[str]) -> None:
        self._package = package
        self._enums = enums
        self.dependencies: set[str] = set()

    def message(self, name: str, lines: Iterable[str]) -> descriptor_pb2.DescriptorProto:
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
        for field in optional:  # their oneofs come after the others
            field.proto3_optional = True
            field.oneof_index = _oneof(made, f"_{field.name}")
        return made

    def _type(self, field: Field, name: str) -> None:
        scalar, known = SCALARS.get(name), WELL_KNOWN.get(name)
        if scalar is not None:
            field.type = scalar
        elif known is not None:
            field.type, field.type_name = Field.TYPE_MESSAGE, f".google.protobuf.{name}"
            self.dependencies.add(known.name)
        else:
            field.type = Field.TYPE_ENUM if name in self._enums else Field.TYPE_MESSAGE
            field.type_name = f".{self._package}.{name}"

    def _string_map(self, message: descriptor_pb2.DescriptorProto, field: Field, owner: str) -> None:
        entry_name = "".join(part.title() for part in field.name.split("_")) + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for number, part in ((1, "key"), (2, "value")):
            entry.field.add(name=part, number=number, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
        field.label, field.type = Field.LABEL_REPEATED, Field.TYPE_MESSAGE
        field.type_name = f".{self._package}.{owner}.{entry_name}"


def _oneof(message: descriptor_pb2.DescriptorProto, name: str) -> int:
    names = [one.name for one in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        names.append(name)
    return names.index(name)
