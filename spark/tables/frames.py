"""Files of remoting frames one behind the other, as `mq frames` takes them: one row a frame."""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import FrameError, ProtocolError
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.framing import LENGTH_BYTES, FrameDecoder, frame_bytes
from twisted_mq.protocol.wire.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE
from twisted_mq.spark.errors import StoreReadError

COLUMNS = {
    "file": "string", "offset": "bigint", "length": "int", "code": "int", "name": "string", "isResponse": "boolean",
    "isOneWay": "boolean", "opaque": "int", "flag": "int", "language": "string", "version": "int", "serialize": "string",
    "remark": "string", "extFields": "map<string,string>", "body": "binary",
}  # fmt: skip
HIDDEN = "***"
_SECRETS = (ACCESS_KEY, SIGNATURE, SECURITY_TOKEN)
_REQUESTS = {int(code): code.name for code in RequestCode}
_RESPONSES = {int(code): code.name for code in ResponseCode}


def rows(path: str) -> Iterator[tuple[object, ...]]:
    """The frames of a file. What proves who sent them is left out. Raises StoreReadError at bytes that are no frame."""
    with open(path, "rb") as file:
        offset = 0
        while start := file.read(LENGTH_BYTES):
            try:
                size = frame_bytes(start.ljust(LENGTH_BYTES, b"\xff"), offset)
                data = start + file.read(size - len(start))
                (command,) = FrameDecoder().receive_data(data)
                yield _row(path, offset, size, command)
            except (ProtocolError, ValueError) as error:
                reason = error.reason if isinstance(error, FrameError) else str(error)
                raise StoreReadError(f"{path}: no frame at offset {offset}: {reason}") from error
            offset += size


def _row(path: str, offset: int, size: int, command: RemotingCommand) -> tuple[object, ...]:
    names = _RESPONSES if command.is_response else _REQUESTS
    fields = {name: HIDDEN if name in _SECRETS else value for name, value in command.ext_fields.items()}
    return (
        path, offset, size, command.code, names.get(command.code), command.is_response, command.is_one_way, command.opaque,
        command.flag, command.language, command.version, SerializeType(command.serialize_type).name, command.remark,
        fields, command.body,
    )  # fmt: skip
