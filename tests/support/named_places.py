"""Every request to a broker that names a place: a physical offset, a queue offset, an id, a receipt or a handle.

One table for the page in docs/reference and for the test that sends the hostile values of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from twisted_mq.protocol.bodies import BatchAck, BatchAckMessageRequestBody, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.message_id import offset_message_id
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.names.recall_handle import RecallHandle

BROKER = "broker-cap"
FAR = 1 << 62


@attrs.frozen
class Known:
    """The places of a broker that an attacker knows, and the time.

    The places are those of a forged record in a body of its own, of bytes inside a real record, of the log's end, and of
    another client's half message.
    """

    forged: int
    inside: int
    end: int
    half: int
    now_ms: int

    @property
    def no_records(self) -> tuple[int, ...]:
        """Physical offsets where no record begins."""
        return self.forged, self.forged + 1, self.inside, self.end, FAR, -1

    def ids(self) -> Iterable[str]:
        """The same as offset ids."""
        host = pack_host("127.0.0.2", 20911)
        return (offset_message_id(host, offset) for offset in self.no_records if offset >= 0)


Fields = dict[str, str]
Asked = tuple[Fields, bytes]


@attrs.frozen
class Named:
    """A request that names a place: the fields that name it, what it is the place of, and how it is proved.

    `hostile` makes requests with hostile values, `answers` are the codes of the answers to these.
    """

    fields: str
    place_of: str
    proof: str
    hostile: Callable[[Known], Iterable[Asked]]
    answers: tuple[int, ...]


RECORD = (
    "a queue entry of the record's own topic and queue names the offset, or the walk from its file's start reaches it"
)
ENTRY = "a queue entry of {} names the offset"
_SYSTEM_ERROR = (int(ResponseCode.SYSTEM_ERROR),)
_PULL = {"consumerGroup": "G", "topic": "Secret", "queueId": "0", "maxMsgNums": "1", "sysFlag": "4", "subscription": "*",
         "commitOffset": "0", "subVersion": "0", "suspendTimeoutMillis": "0"}  # fmt: skip
_OF_QUEUE = {"topic": "Secret", "consumerGroup": "G", "queueId": "0"}
_OFFSETS = (-1, 2, FAR)
"""No queue offsets of a queue with one message; its end is 1."""


def _receipt(known: Known, **changed: int | str) -> str:
    fields: dict[str, int | str] = {"start_offset": 0, "pop_time": known.now_ms, "invisible_time": 60_000,
                                    "revive_queue_id": 0, "mark": "0", "broker_name": BROKER}  # fmt: skip
    return Receipt(**(fields | changed)).encode()  # type: ignore[arg-type]


def _end(known: Known, offset: int, **changed: str) -> Asked:
    fields = {"producerGroup": "PG", "commitLogOffset": str(offset), "tranStateTableOffset": "0",
              "fromTransactionCheck": "false", "msgId": "K", "commitOrRollback": "8"}  # fmt: skip
    return fields | changed, b""


def _ends(known: Known) -> Iterable[Asked]:
    for decision in ("8", "12"):
        for offset in known.no_records:
            yield _end(known, offset, commitOrRollback=decision)
        yield _end(known, known.half, commitOrRollback=decision)
        yield _end(known, known.half, commitOrRollback=decision, fromTransactionCheck="true")


def _queue_offsets(fields: Fields, name: str, *offsets: int) -> Iterable[Asked]:
    return [({**fields, name: str(offset)}, b"") for offset in offsets or _OFFSETS]


def _acks(known: Known) -> Iterable[Asked]:
    yield from _queue_offsets(_OF_QUEUE | {"extraInfo": _receipt(known)}, "offset")
    yield {**_OF_QUEUE, "offset": "0", "extraInfo": _receipt(known, revive_queue_id=9999)}, b""
    yield {**_OF_QUEUE, "offset": "0", "extraInfo": "no receipt"}, b""


def _batch_acks(known: Known) -> Iterable[Asked]:
    for revive, bits in ((9999, "AQ=="), (0, "/////w==")):
        ack = BatchAck("G", "Secret", "0", FAR, 0, revive, known.now_ms, 60_000, bits)
        yield {}, encode_body(BatchAckMessageRequestBody(BROKER, [ack]))


def _handles(known: Known) -> Iterable[Asked]:
    due, past = str(known.now_ms + 60_000), str(known.now_ms - 1)
    for handle in (
        RecallHandle("Secret", BROKER, due, "K"),
        RecallHandle("T", "another", due, "K"),
        RecallHandle("T", BROKER, past, "K"),
        RecallHandle("T", BROKER, str(FAR), "K"),
    ):
        yield {"topic": "T", "recallHandle": handle.encode()}, b""
    yield {"topic": "T", "recallHandle": "no handle"}, b""


NAMED_PLACES: dict[RequestCode, Named] = {
    RequestCode.VIEW_MESSAGE_BY_ID: Named(
        "offset",
        "a record",
        RECORD,
        lambda known: [({"offset": str(offset), "topic": "T"}, b"") for offset in known.no_records],
        _SYSTEM_ERROR,
    ),
    RequestCode.CONSUMER_SEND_MSG_BACK: Named(
        "offset",
        "a record, of no topic of the broker's own",
        RECORD,
        lambda known: [
            ({"offset": str(offset), "group": "G", "delayLevel": "-1"}, b"")
            for offset in (*known.no_records, known.half)
        ],
        (ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION),
    ),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: Named(
        "msgId",
        "a record, of no topic of the broker's own",
        RECORD,
        lambda known: [
            ({"consumerGroup": "G", "clientId": "one", "topic": "T", "msgId": one}, b"")
            for one in (*known.ids(), offset_message_id(pack_host("127.0.0.2", 20911), known.half), "", "zz")
        ],
        (ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION),
    ),
    RequestCode.END_TRANSACTION: Named(
        "commitLogOffset, tranStateTableOffset",
        "a half message of the producer group",
        f"{ENTRY.format('the half messages')}; it came from the connection's host, or the connection is registered in its group",
        _ends,
        (ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION),
    ),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: Named(
        "msgId",
        "a message that was given up",
        ENTRY.format("TRANS_CHECK_MAX_TIME_TOPIC"),
        lambda known: [({"topic": "T", "msgId": one}, b"") for one in (*known.ids(), "", "zz")],
        _SYSTEM_ERROR,
    ),
    RequestCode.QUERY_MESSAGE: Named(
        "topic, key",
        "records, by a hash that other topics' keys may have too",
        "the index names the record, whose own topic is compared with the request's",
        lambda known: [
            ({"topic": "SecBB", "key": "K", "maxNum": "9", "beginTimestamp": "0", "endTimestamp": str(FAR)}, b"")
        ],
        (ResponseCode.QUERY_NOT_FOUND,),
    ),
    **dict.fromkeys(
        (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE),
        Named(
            "queueOffset",
            "a queue offset",
            "outside the queue nothing is read, and the answer says where to go on",
            lambda known: _queue_offsets(_PULL, "queueOffset"),
            (ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_RETRY_IMMEDIATELY),
        ),
    ),
    RequestCode.QUERY_CONSUME_QUEUE: Named(
        "index",
        "a queue offset",
        "outside the queue nothing is read",
        lambda known: _queue_offsets({"topic": "Secret", "queueId": "0", "count": "1"}, "index"),
        (ResponseCode.SUCCESS,),
    ),
    RequestCode.UPDATE_CONSUMER_OFFSET: Named(
        "commitOffset",
        "a queue offset of the group's own",
        "kept as it is for queues that exist; a read outside the queue says where to go on",
        lambda known: _queue_offsets(_OF_QUEUE | {"queueId": "70000"}, "commitOffset", FAR),
        (ResponseCode.SUCCESS, ResponseCode.INVALID_PARAMETER),
    ),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: Named(
        "offset, timestamp",
        "a queue offset of the group's own, or a time",
        "an offset outside the queue is refused; a time is looked up in the queue",
        lambda known: _queue_offsets(
            {"topic": "Secret", "group": "G", "timestamp": "-1", "isForce": "true", "queueId": "0"}, "offset", 3, FAR
        ),
        _SYSTEM_ERROR,
    ),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: Named(
        "timestamp",
        "a time",
        "looked up in the queue's own entries",
        lambda known: [({"topic": "Secret", "queueId": "0", "timestamp": str(at)}, b"") for at in (-1, FAR)],
        (ResponseCode.SUCCESS,),
    ),
    RequestCode.ACK_MESSAGE: Named(
        "offset, extraInfo",
        "a queue offset, and the receipt of its pop",
        "the offset is one of the queue's; the receipt's revive queue exists, and the check point that it names holds the"
        " offset, or it settles nothing",
        _acks,
        (ResponseCode.NO_MESSAGE, ResponseCode.MESSAGE_ILLEGAL, ResponseCode.SYSTEM_ERROR),
    ),
    RequestCode.BATCH_ACK_MESSAGE: Named(
        "acks",
        "queue offsets, and the receipts of their pops",
        "as of ACK_MESSAGE; offsets outside the queue are left out",
        _batch_acks,
        (ResponseCode.SUCCESS, ResponseCode.MESSAGE_ILLEGAL),
    ),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: Named(
        "offset, extraInfo, invisibleTime",
        "a queue offset, the receipt of its pop, and a time",
        "the offset is one of the queue's; the revive queue exists; the time is one that the timer serves",
        lambda known: [
            *[(fields | {"invisibleTime": "1000"}, body) for fields, body in _acks(known)],
            ({**_OF_QUEUE, "offset": "1", "extraInfo": _receipt(known), "invisibleTime": "1000"}, b""),
            ({**_OF_QUEUE, "offset": "0", "extraInfo": _receipt(known), "invisibleTime": str(FAR)}, b""),
            ({**_OF_QUEUE, "offset": "0", "extraInfo": _receipt(known), "invisibleTime": "-1"}, b""),
        ],
        (
            ResponseCode.NO_MESSAGE,
            ResponseCode.MESSAGE_ILLEGAL,
            ResponseCode.INVALID_PARAMETER,
            ResponseCode.SYSTEM_ERROR,
        ),
    ),
    RequestCode.RECALL_MESSAGE: Named(
        "recallHandle",
        "a message that waits for its time",
        "the handle's topic is the request's, its broker this one, its time one to come",
        _handles,
        (ResponseCode.ILLEGAL_OPERATION,),
    ),
    RequestCode.EXCHANGE_BROKER_HA_INFO: Named(
        "masterHaAddress, masterFlushOffset",
        "a master's address and the end of its log",
        "not taken from a request: a slave learns its master's address from the name servers",
        lambda known: [({"masterHaAddress": "127.0.0.1:1", "masterFlushOffset": str(FAR)}, b"")],
        (ResponseCode.SUCCESS,),
    ),
    RequestCode.RESET_MASTER_FLUSH_OFFSET: Named(
        "masterFlushOffset",
        "the end of a master's log",
        "not taken from a request",
        lambda known: [({"masterFlushOffset": str(at)}, b"") for at in (0, FAR)],
        (ResponseCode.SUCCESS,),
    ),
}
