"""ZooKeeper's frames (zookeeper.jute): each is its length in 4 bytes, which is not part of what is here, and then

    a client's first frame     CONNECT_REQUEST
    the server's first         CONNECT_RESPONSE
    a request                  REQUEST_HEADER and the record of its code in REQUESTS
    an answer                  REPLY_HEADER and, without an error, the record of its code in ANSWERS
    an event                   REPLY_HEADER with the id -1, and WATCH_EVENT

Numbers are big-endian, texts and data have their length in front of them, -1 for none.
"""

from __future__ import annotations

from typing import Any

import attrs
import construct

from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.zookeeper.codes import (
    CONNECTED_STATE,
    EVENT_XID,
    NO_TRANSACTION,
    ErrorCode,
    RequestCode,
)

PASSWORD_BYTES = 16

Int, Long, Bool = construct.Int32sb, construct.Int64sb, construct.Flag


def _sized(data: construct.Construct) -> construct.Construct:
    length = construct.Rebuild(Int, lambda this: len(this.data))
    return construct.FocusedSeq("data", "length" / length, "data" / data)


Buffer = _sized(construct.Bytes(lambda this: max(this.length, 0)))
Text = construct.ExprAdapter(Buffer, lambda data, _: data.decode("utf-8"), lambda text, _: text.encode("utf-8"))


def _list_of(item: construct.Construct) -> construct.Construct:
    return _sized(construct.Array(lambda this: max(this.length, 0), item))


CONNECT_REQUEST = construct.Struct(
    "protocol_version" / Int,
    "last_transaction" / Long,
    "time_out_ms" / Int,
    "session_id" / Long,
    "password" / Buffer,
    "read_only" / construct.Optional(Bool),
)

CONNECT_RESPONSE = construct.Struct(
    "protocol_version" / Int,
    "time_out_ms" / Int,
    "session_id" / Long,
    "password" / Buffer,
    "read_only" / Bool,
)

REQUEST_HEADER = construct.Struct("xid" / Int, "code" / Int)

REPLY_HEADER = construct.Struct("xid" / Int, "transaction" / Long, "error" / Int)

STAT = construct.Struct(
    "created_by" / Long,
    "changed_by" / Long,
    "created_ms" / Long,
    "changed_ms" / Long,
    "version" / Int,
    "children_version" / Int,
    "acl_version" / Int,
    "session" / Long,
    "data_length" / Int,
    "child_count" / Int,
    "children_changed_by" / Long,
)

ACCESS = construct.Struct("rights" / Int, "scheme" / Text, "who" / Text)
CREATE = construct.Struct("path" / Text, "data" / Buffer, "access" / _list_of(ACCESS), "flags" / Int)
PATH_AND_VERSION = construct.Struct("path" / Text, "version" / Int)
PATH_AND_WATCH = construct.Struct("path" / Text, "watch" / Bool)
SET_DATA = construct.Struct("path" / Text, "data" / Buffer, "version" / Int)
PATH = construct.Struct("path" / Text)
AUTH = construct.Struct("kind" / Int, "scheme" / Text, "auth" / Buffer)
NOTHING = construct.Struct()
CREATED = construct.Struct("path" / Text, "stat" / STAT)
DATA = construct.Struct("data" / Buffer, "stat" / STAT)
ONE_STAT = construct.Struct("stat" / STAT)
NAMES = construct.Struct("names" / _list_of(Text))
NAMES_AND_STAT = construct.Struct("names" / _list_of(Text), "stat" / STAT)
ERROR = construct.Struct("error" / Int)
WATCH_EVENT = construct.Struct("kind" / Int, "state" / Int, "path" / Text)

OPERATIONS = {
    RequestCode.CREATE: CREATE,
    RequestCode.CREATE_2: CREATE,
    RequestCode.DELETE: PATH_AND_VERSION,
    RequestCode.SET_DATA: SET_DATA,
    RequestCode.CHECK: PATH_AND_VERSION,
}
"""The operations that a multi-transaction may hold."""

RESULTS = {
    RequestCode.CREATE: PATH,
    RequestCode.CREATE_2: CREATED,
    RequestCode.DELETE: NOTHING,
    RequestCode.SET_DATA: ONE_STAT,
    RequestCode.CHECK: NOTHING,
}

END = -1
"""The code of a multi-transaction's last header, and of a result that is an error."""


def _multi(records: dict[Any, construct.Construct]) -> construct.Construct:
    one = construct.Struct(
        "code" / Int,
        "done" / Bool,
        "error" / Int,
        "record"
        / construct.If(lambda this: not this.done, construct.Switch(construct.this.code, records, construct.Error)),
    )
    return construct.Struct("parts" / construct.RepeatUntil(lambda part, _parts, _context: part["done"], one))


REQUESTS: dict[RequestCode, construct.Construct] = {
    **{code: record for code, record in OPERATIONS.items() if code is not RequestCode.CHECK},
    RequestCode.EXISTS: PATH_AND_WATCH,
    RequestCode.GET_DATA: PATH_AND_WATCH,
    RequestCode.GET_CHILDREN: PATH_AND_WATCH,
    RequestCode.GET_CHILDREN_2: PATH_AND_WATCH,
    RequestCode.SYNC: PATH,
    RequestCode.PING: NOTHING,
    RequestCode.MULTI: _multi(OPERATIONS),
    RequestCode.AUTH: AUTH,
    RequestCode.CLOSE_SESSION: NOTHING,
}

ANSWERS: dict[RequestCode, construct.Construct] = {
    **{code: record for code, record in RESULTS.items() if code is not RequestCode.CHECK},
    RequestCode.EXISTS: ONE_STAT,
    RequestCode.GET_DATA: DATA,
    RequestCode.GET_CHILDREN: NAMES,
    RequestCode.GET_CHILDREN_2: NAMES_AND_STAT,
    RequestCode.SYNC: PATH,
    RequestCode.PING: NOTHING,
    RequestCode.MULTI: _multi({**RESULTS, END: ERROR}),
    RequestCode.AUTH: NOTHING,
    RequestCode.CLOSE_SESSION: NOTHING,
}


class BadRecord(ProtocolError):
    """A frame that does not hold what its code says."""


@attrs.frozen
class Request:
    """A request. `record` is as declared in REQUESTS; None where the server does not know the code."""

    xid: int
    code: int
    record: Any


def decode_connect(frame: bytes) -> Any:
    """Return the record of a connection's first frame. Raises BadRecord."""
    return _parse(CONNECT_REQUEST, frame)


def encode_connected(time_out_ms: int, session_id: int, password: bytes) -> bytes:
    """Return the answer to the first frame; with all 0, the session that the client asked for is over."""
    fields = {"protocol_version": 0, "time_out_ms": time_out_ms, "session_id": session_id, "password": password}
    return _built(CONNECT_RESPONSE, {**fields, "read_only": False})


def decode_request(frame: bytes) -> Request:
    """Raises BadRecord."""
    header = _parse(REQUEST_HEADER, frame)
    record = REQUESTS.get(header.code)
    body = None if record is None else _parse(record, frame[REQUEST_HEADER.sizeof() :])
    return Request(header.xid, header.code, body)


def encode_answer(request: Request, transaction: int, answer: dict[str, Any]) -> bytes:
    """Return the answer to a request that was done."""
    record = ANSWERS[RequestCode(request.code)]
    return encode_error(request, transaction, ErrorCode.OK) + _built(record, answer)


def encode_error(request: Request, transaction: int, error: ErrorCode) -> bytes:
    """Return the answer to a request that was not done."""
    return _built(REPLY_HEADER, {"xid": request.xid, "transaction": transaction, "error": error})


def encode_event(kind: int, path: str) -> bytes:
    """Return the event that a watch saw."""
    header = _built(REPLY_HEADER, {"xid": EVENT_XID, "transaction": NO_TRANSACTION, "error": ErrorCode.OK})
    return header + _built(WATCH_EVENT, {"kind": kind, "state": CONNECTED_STATE, "path": path})


def _parse(record: construct.Construct, frame: bytes) -> Any:
    try:
        return record.parse(frame)
    except (construct.ConstructError, UnicodeDecodeError) as error:
        raise BadRecord(f"not a frame of ZooKeeper's: {str(error).splitlines()[-1]}") from None


def _built(record: construct.Construct, fields: dict[str, Any]) -> bytes:
    built: bytes = record.build(fields)
    return built
