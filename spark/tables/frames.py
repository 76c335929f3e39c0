"""Recorded remoting frames as rows: the contents of a frame, and its time and connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import FrameError, ProtocolError
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.protocol.wire.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE
from twisted_mq.spark.errors import StoreReadError

COLUMNS = {
    "file": "string", "offset": "bigint", "time": "timestamp", "connection": "string", "direction": "string",
    "length": "int", "code": "int", "name": "string", "isResponse": "boolean", "isOneWay": "boolean", "opaque": "int",
    "flag": "int", "language": "string", "version": "int", "serialize": "string", "remark": "string",
    "extFields": "map<string,string>", "body": "binary",
}  # fmt: skip
HIDDEN = "***"
_SECRETS = (ACCESS_KEY, SIGNATURE, SECURITY_TOKEN, "accessKey", "secretKey")
_SECRET_BODIES = frozenset({int(RequestCode.AUTH_CREATE_USER), int(RequestCode.AUTH_UPDATE_USER)})
"""Requests whose bodies are users with passwords."""
_REQUESTS = {int(code): code.name for code in RequestCode}
_RESPONSES = {int(code): code.name for code in ResponseCode}
FROM_CLIENT, TO_CLIENT = "client->server", "server->client"


class Seen(NamedTuple):
    """A frame with its length prefix; fields that the recording does not have are None. `offset` identifies it in its file."""

    offset: int
    frame: bytes
    time_us: int | None = None
    connection: str | None = None
    direction: str | None = None


def rows(path: str, seen: Iterable[Seen], keep_secrets: bool) -> Iterator[tuple[object, ...]]:
    """Return the frames of a file with COLUMNS. Credentials of senders are hidden, unless they are kept.

    Raises StoreReadError at bytes that are not a frame.
    """
    for one in seen:
        try:
            (command,) = FrameDecoder().receive_data(one.frame)
            yield _row(path, one, command, keep_secrets)
        except (ProtocolError, ValueError) as error:
            reason = error.reason if isinstance(error, FrameError) else str(error)
            raise StoreReadError(f"{path}: no frame at offset {one.offset}: {reason}") from error


def _row(path: str, seen: Seen, command: RemotingCommand, keep_secrets: bool) -> tuple[object, ...]:
    names = _RESPONSES if command.is_response else _REQUESTS
    fields, body = command.ext_fields, command.body
    if not keep_secrets:
        fields = {name: HIDDEN if name in _SECRETS else value for name, value in fields.items()}
        body = HIDDEN.encode() if command.code in _SECRET_BODIES and not command.is_response else body
    return (
        path, seen.offset, seen.time_us, seen.connection, seen.direction, len(seen.frame), command.code,
        names.get(command.code), command.is_response, command.is_one_way, command.opaque, command.flag, command.language,
        command.version, SerializeType(command.serialize_type).name, command.remark, fields, body,
    )  # fmt: skip
