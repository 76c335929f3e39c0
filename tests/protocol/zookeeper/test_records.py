"""ZooKeeper's frames, beside kazoo's own form of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as kazoo
from kazoo.security import ACL, CREATOR_ALL_ACL, Id

from twisted_mq.protocol.zookeeper.codes import ErrorCode, RequestCode
from twisted_mq.protocol.zookeeper.records import (
    REQUESTS,
    BadRecord,
    Request,
    decode_connect,
    decode_request,
    encode_answer,
    encode_connected,
    encode_error,
    encode_event,
)

PATHS = st.text(max_size=20)
DATA = st.binary(max_size=30)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
ACCESS = st.lists(st.builds(ACL, INTS, st.builds(Id, PATHS, PATHS)), max_size=3)
CREATES = st.builds(kazoo.Create, PATHS, DATA, ACCESS, st.integers(0, 3))
OPERATIONS = st.one_of(
    CREATES,
    st.builds(kazoo.Delete, PATHS, INTS),
    st.builds(kazoo.SetData, PATHS, DATA, INTS),
    st.builds(kazoo.CheckVersion, PATHS, INTS),
)
SINGLE = st.one_of(
    CREATES,
    st.builds(kazoo.Create2, PATHS, DATA, ACCESS, st.integers(0, 3)),
    st.builds(kazoo.Delete, PATHS, INTS),
    st.builds(kazoo.SetData, PATHS, DATA, INTS),
    st.builds(kazoo.Sync, PATHS),
    *(st.builds(kind, PATHS, st.booleans()) for kind in (kazoo.Exists, kazoo.GetData)),
    *(st.builds(kind, PATHS, st.booleans()) for kind in (kazoo.GetChildren, kazoo.GetChildren2)),
)
STAT_NAMES = (
    "created_by", "changed_by", "created_ms", "changed_ms", "version", "children_version", "acl_version", "session",
    "data_length", "child_count", "children_changed_by",
)  # fmt: skip
STATS = st.tuples(LONGS.filter((-1).__ne__), LONGS, LONGS, LONGS, INTS, INTS, INTS, LONGS, INTS, INTS, LONGS)
"""No change has the number -1, which kazoo reads as None."""


def header(xid: int, code: int) -> bytes:
    return kazoo.int_int_struct.pack(xid, code)


def fields(request: Any) -> dict[str, Any]:
    """A request of kazoo's as ours names its fields."""
    named = request._asdict()
    renamed = {"acl": "access", "watcher": "watch"}
    values = {renamed.get(name, name): value for name, value in named.items()}
    if "access" in values:
        values["access"] = [{"rights": a.perms, "scheme": a.id.scheme, "who": a.id.id} for a in values["access"]]
    return values


def plain(record: Any) -> Any:
    """Without what construct adds."""
    if isinstance(record, dict):
        return {name: plain(value) for name, value in record.items() if name != "_io"}
    return [plain(one) for one in record] if isinstance(record, list) else record


@given(INTS, SINGLE)
def test_requests_are_read_as_kazoo_writes_them(xid: int, request: Any) -> None:
    read = decode_request(header(xid, request.type) + bytes(request.serialize()))
    assert (read.xid, read.code, plain(read.record)) == (xid, request.type, fields(request))


@given(st.lists(OPERATIONS, max_size=4))
def test_multi_transactions_are_read_as_kazoo_writes_them(operations: list[Any]) -> None:
    read = decode_request(header(1, RequestCode.MULTI) + bytes(kazoo.Transaction(operations).serialize()))
    parts = [(part.code, part.done, plain(part.record)) for part in read.record.parts]
    assert parts == [*((one.type, False, fields(one)) for one in operations), (-1, True, None)]


def test_a_first_frame_is_read_and_answered() -> None:
    read = decode_connect(bytes(kazoo.Connect(0, 7, 4000, -5, b"p" * 16, True).serialize()))
    assert (read.last_transaction, read.time_out_ms, read.session_id, read.password) == (7, 4000, -5, b"p" * 16)
    old = decode_connect(bytes(kazoo.Connect(0, 7, 4000, -5, b"p" * 16, True).serialize())[:-1])
    assert (old.session_id, old.read_only) == (-5, None)
    answer, end = kazoo.Connect.deserialize(encode_connected(3000, 2**40, b"q" * 16), 0)
    assert answer == kazoo.Connect(0, 0, 3000, 2**40, b"q" * 16, False)
    assert end == len(encode_connected(3000, 2**40, b"q" * 16))


def answered(code: RequestCode, answer: dict[str, Any]) -> tuple[bytes, int]:
    """An answer as kazoo takes it: the frame, and where its record begins."""
    frame = encode_answer(Request(5, code, None), 9, answer)
    read, offset = kazoo.ReplyHeader.deserialize(frame, 0)
    assert read == kazoo.ReplyHeader(5, 9, 0)
    return frame, offset


@given(PATHS, DATA, st.lists(PATHS, max_size=4), STATS)
def test_answers_are_written_as_kazoo_reads_them(path: str, data: bytes, names: list[str], figures: tuple) -> None:
    stat = dict(zip(STAT_NAMES, figures, strict=True))
    everything = {"path": path, "data": data, "names": names, "stat": stat}
    expected = {
        RequestCode.CREATE: path,
        RequestCode.CREATE_2: (path, figures),
        RequestCode.EXISTS: figures,
        RequestCode.GET_DATA: (data, figures),
        RequestCode.SET_DATA: figures,
        RequestCode.GET_CHILDREN: names,
        RequestCode.GET_CHILDREN_2: (names, figures),
    }
    readers = {
        RequestCode.CREATE: kazoo.Create,
        RequestCode.CREATE_2: kazoo.Create2,
        RequestCode.EXISTS: kazoo.Exists,
        RequestCode.GET_DATA: kazoo.GetData,
        RequestCode.SET_DATA: kazoo.SetData,
        RequestCode.GET_CHILDREN: kazoo.GetChildren,
        RequestCode.GET_CHILDREN_2: kazoo.GetChildren2,
    }
    for code, reader in readers.items():
        assert reader.deserialize(*answered(code, everything)) == expected[code]


def test_results_of_a_multi_transaction_are_written_as_kazoo_reads_them() -> None:
    stat = dict.fromkeys(STAT_NAMES, 3)
    parts = [
        {"code": RequestCode.CREATE, "done": False, "error": 0, "record": {"path": "/a"}},
        {"code": RequestCode.SET_DATA, "done": False, "error": 0, "record": {"stat": stat}},
        {"code": RequestCode.DELETE, "done": False, "error": 0, "record": {}},
        {"code": RequestCode.CHECK, "done": False, "error": 0, "record": {}},
        {"code": -1, "done": False, "error": -101, "record": {"error": -101}},
        {"code": -1, "done": True, "error": -1, "record": None},
    ]
    read = kazoo.Transaction.deserialize(*answered(RequestCode.MULTI, {"parts": parts}))
    assert read[:4] == ["/a", (3,) * len(STAT_NAMES), True, True]
    assert type(read[4]) is kazoo.EXCEPTIONS[-101]


def test_events_and_errors_are_written_as_kazoo_reads_them() -> None:
    frame = encode_event(4, "/a")
    read, offset = kazoo.ReplyHeader.deserialize(frame, 0)
    assert (read, kazoo.Watch.deserialize(frame, offset)[0]) == (kazoo.ReplyHeader(-1, -1, 0), kazoo.Watch(4, 3, "/a"))
    error = encode_error(Request(8, 1, None), 6, ErrorCode.NODE_EXISTS)
    assert kazoo.ReplyHeader.deserialize(error, 0) == (kazoo.ReplyHeader(8, 6, -110), len(error))


def test_an_unknown_code_is_left_to_the_server() -> None:
    assert decode_request(header(1, 4711) + b"whatever") == Request(1, 4711, None)


@given(st.sampled_from(sorted(REQUESTS)), st.binary(max_size=80))
def test_whatever_comes_is_a_record_or_bad(code: int, data: bytes) -> None:
    for decode, frame in ((decode_request, header(1, code) + data), (decode_request, data), (decode_connect, data)):
        try:
            decode(frame)
        except BadRecord as bad:
            assert str(bad).startswith("not a frame of ZooKeeper's: ")


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_record_cut_short_is_bad(cut: int) -> None:
    whole = bytes(kazoo.Create("/mq/a", b"data", CREATOR_ALL_ACL, 1).serialize())
    with pytest.raises(BadRecord):
        decode_request(header(1, RequestCode.CREATE) + whole[:-cut])
