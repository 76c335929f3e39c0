"""The seam between the broker and a message store, and the values that cross it.

Two stores provide it, `message_store.FileMessageStore` and its twin `memory.memory_store.MemoryMessageStore`; both
pass the contract tests in tests/storage/test_store_contract.py. All calls come from one thread (the reactor's); only
flushing happens elsewhere, see `IMessageStore.when_flushed`.
"""

# mypy: disable-error-code="misc,empty-body"
# zope interfaces declare methods without self and without bodies

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

import attrs
from zope.interface import Interface

from twisted_mq.storage.config import StoreConfig


class PutStatus(enum.Enum):
    """How an append ended (Apache: PutMessageStatus)."""

    PUT_OK = enum.auto()
    MESSAGE_ILLEGAL = enum.auto()
    PROPERTIES_SIZE_EXCEEDED = enum.auto()
    SERVICE_NOT_AVAILABLE = enum.auto()
    OS_PAGE_CACHE_BUSY = enum.auto()
    UNKNOWN_ERROR = enum.auto()


class Shut(enum.Enum):
    """Why a store takes no messages, what outweighs the others first. The values are for people."""

    NOT_STARTED = "the message store is not started"
    SHUT_DOWN = "the message store has been shut down"
    SLAVE = "the messages come from the master"
    DISK_FAILED = "the disk lost or refused data"
    DISK_FULL = "the broker's disk is full"
    PAGE_CACHE_BUSY = "all buffers wait for the disk"

    @property
    def status(self) -> PutStatus:
        """What a put ends with."""
        return PutStatus.OS_PAGE_CACHE_BUSY if self is Shut.PAGE_CACHE_BUSY else PutStatus.SERVICE_NOT_AVAILABLE


class GetStatus(enum.Enum):
    """How a read of a queue ended (Apache: GetMessageStatus)."""

    FOUND = enum.auto()
    NO_MATCHED_MESSAGE = enum.auto()
    MESSAGE_WAS_REMOVING = enum.auto()
    OFFSET_FOUND_NULL = enum.auto()
    OFFSET_OVERFLOW_BADLY = enum.auto()
    OFFSET_OVERFLOW_ONE = enum.auto()
    OFFSET_TOO_SMALL = enum.auto()
    NO_MATCHED_LOGIC_QUEUE = enum.auto()
    NO_MESSAGE_IN_QUEUE = enum.auto()
    OFFSET_RESET = enum.auto()
    """No store answers it: the broker does, to a reader whose group was given another offset."""


class Boundary(enum.Enum):
    """Which offset a search by time answers where several or none match (Apache: BoundaryType)."""

    LOWER = "lower"
    UPPER = "upper"


@attrs.define(eq=False)
class InnerMessage:
    """One message on its way into the store (Apache: MessageExtBrokerInner).

    `born_host` is 8 bytes (IPv4 and port) or 20 (IPv6 and port), as the record holds it; `properties` is the record's
    text form in UTF-8; `property_map` the same, parsed; `tags_code` what the queue entry carries.
    """

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    property_map: dict[str, str]
    tags_code: int
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x00\x00"
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


@attrs.define(eq=False)
class InnerBatch:
    """Messages of one topic and queue on their way into the store, one behind the other.

    `shared` has what they share, its body, properties, flag and tags code count for nothing. The sequences have an
    item for each message; `tags_codes` are what their queue entries carry. All messages' properties end with `suffix`.
    `alike` where it is known that all bodies have one length, and all properties; then they are written quicker.
    """

    shared: InnerMessage
    flags: Sequence[int]
    bodies: Sequence[bytes]
    properties: Sequence[bytes]
    tags_codes: Sequence[int]
    suffix: bytes = b""
    alike: bool = False

    def __len__(self) -> int:
        return len(self.bodies)

    def messages(self) -> Iterator[InnerMessage]:
        """Each as a message of its own; its property map is that of `shared`."""
        columns = zip(self.flags, self.bodies, self.properties, self.tags_codes, strict=True)
        for flag, body, properties, tags_code in columns:
            properties += self.suffix
            yield attrs.evolve(self.shared, flag=flag, body=body, properties=properties, tags_code=tags_code)


@attrs.define(eq=False)
class PlainMessages:
    """Messages of one topic that are not special on their way into the store, as columns with an item for each message.

    The topic has 127 bytes at most. `properties` are the records' text form in UTF-8, of 32,767 bytes at most each. `born_host`
    has 8 bytes. The sys flag has no bit of IPv6 hosts, inner batches or messages outside of queues.
    """

    topic: str
    queue_ids: Sequence[int]
    bodies: Sequence[bytes]
    properties: Sequence[bytes]
    tags_codes: Sequence[int]
    born_timestamps: Sequence[int]
    born_host: bytes
    flag: int
    sys_flag: int
    reconsume_times: int

    def __len__(self) -> int:
        return len(self.bodies)

    def each(self) -> Iterator[InnerMessage]:
        """Return each as a message of its own, without a property map."""
        columns = zip(self.queue_ids, self.bodies, self.properties, self.tags_codes, self.born_timestamps, strict=True)
        for queue_id, body, properties, tags_code, born_timestamp in columns:
            yield InnerMessage(
                self.topic,
                queue_id,
                body,
                properties,
                {},
                tags_code,
                self.flag,
                self.sys_flag,
                born_timestamp,
                self.born_host,
                self.reconsume_times,
            )


@attrs.define(eq=False)
class Places:
    """Where messages were stored, as columns; `end_offset` is the first byte behind the last one."""

    queue_offsets: Sequence[int] = ()
    physical_offsets: Sequence[int] = ()
    sizes: Sequence[int] = ()
    end_offset: int = -1

    def __len__(self) -> int:
        return len(self.queue_offsets)


@attrs.define(eq=False)
class PutResult:
    """Where a message (or the first of a batch) went. `end_offset` is the first byte behind the record or batch.

    An inner batch is one record of `message_count` messages. `shut` says why the store takes none at all.
    """

    status: PutStatus
    queue_offset: int = -1
    physical_offset: int = -1
    end_offset: int = -1
    store_timestamp: int = 0
    message_count: int = 1
    physical_offsets: Sequence[int] = ()
    shut: Shut | None = None


@attrs.define(eq=False)
class GetResult:
    """What a read found: whole stored records in queue order, ready for the wire.

    `records` are read-only bytes-like views; they stay valid until the store is closed. `next_begin_offset` is where
    the reader goes on, whatever the status. Offsets are queue offsets. `message_count` is how many messages the records
    of a batch queue hold; 0 where each record is one message.
    """

    status: GetStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    records: list[memoryview | bytes] = attrs.field(factory=list)
    size_bytes: int = 0
    suggest_pulling_from_slave: bool = False
    message_count: int = 0


@attrs.define(eq=False)
class QueryResult:
    """What a search by key found: whole stored records, oldest first; views as in GetResult.

    The index's end is 0 where nothing was found (Apache: QueryMessageResult). Two keys may have one hash, so a record
    need not have the key: whoever asks compares (Apache's client does).
    """

    records: Sequence[memoryview | bytes] = ()
    index_last_update_timestamp: int = 0
    index_last_update_physical_offset: int = 0


@attrs.frozen
class Inconsistency:
    """One thing that is wrong with a store: the file, the position in it (or offset), and what."""

    path: str
    offset: int
    problem: str

    def __str__(self) -> str:
        return f"{self.path} at {self.offset}: {self.problem}"


RecordTest = Callable[[memoryview | bytes], bool]
"""Whether a reader wants a stored record; called for the entries whose tags code it wants."""

IsBatchTopic = Callable[[str], bool | None]
"""Whether a topic has batch queues (queue.type=BatchCQ); None where nobody knows the topic."""

ArrivalListener = Callable[[str, int, int, int, int], None]
"""Called on dispatch: topic, queue id, queue offset of the message, tags code, store timestamp.

For messages that were put together once they are all visible: once for each tags code, with the first one's offset.
"""


class IMessageStore(Interface):
    """A message store (Apache: MessageStore)."""

    def start() -> None:
        """Recover, take the directory's lock, begin background flushing. Raises StoreError subclasses."""

    def close() -> None:
        """Flush everything, write the checkpoint, remove the abort file, free the lock. A second call does nothing."""

    def put_message(message: InnerMessage) -> PutResult:
        """Append one message. Never raises for the message's own faults: the status says them.

        The message is visible to readers only after `dispatch`.
        """

    def put_messages(batch: InnerBatch) -> PutResult:
        """Append a batch back to back, all or none (Apache: putMessages)."""

    def put_plain(messages: PlainMessages) -> Places:
        """Append plain messages up to the first that `put_message` has to look at; return where they are.

        That is one whose queue is not there yet or is a special one, for which there is no room in the log's or queue's file,
        or which the store does not take. Those of one queue may become visible together.
        """

    def dispatch(arrived: ArrivalListener | None = None) -> bool:
        """Make everything appended visible that may be, under synchronous flush only what is flushed, and tell of it.

        Of a master's bytes (`append_log`) only a part at a time: whether to call again, in a later turn.
        """

    def get_message(
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags_codes: Collection[int] | None,
        matches: RecordTest | None = None,
    ) -> GetResult:
        """Read a queue from `offset`; entries whose tags code is not in `tags_codes`, and records that do not match, are
        passed over.
        """

    def min_offset_in_queue(topic: str, queue_id: int) -> int:
        """The first readable queue offset; 0 for an unknown queue."""

    def max_offset_in_queue(topic: str, queue_id: int) -> int:
        """The offset behind the last visible message; 0 for an unknown queue."""

    def offset_by_time(topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary) -> int:
        """The queue offset of the message stored at that time (Apache: getOffsetInQueueByTime)."""

    def store_timestamp(topic: str, queue_id: int, offset: int) -> int:
        """When the message at that queue offset was stored, in ms; -1 where there is none."""

    def earliest_message_time(topic: str, queue_id: int) -> int:
        """Store time of the queue's first readable message in ms; -1 where it has none."""

    def look_message(physical_offset: int) -> bytes | None:
        """The stored record that begins there; None where none is proved to.

        Proof is the entry of the record's queue, or that the record was just put. Bytes in a body that look like a
        record and name their own place are none. A record that no queue has is found by `walk_to_message` alone.
        """

    def walk_to_message(physical_offset: int) -> Generator[None, None, bytes | None]:
        """The same by a walk from record to record, in steps of a few ms; the generator returns the record or None."""

    def query_message(topic: str, key: str, max_count: int, begin: int, end: int) -> QueryResult:
        """The newest visible records of a topic with a key, stored from `begin` to `end` ms (Apache: queryMessage).

        A key is a message's unique key or one of its KEYS. Times count in whole seconds from the index file's first.
        """

    def build_index(max_bytes: int) -> bool:
        """Index about so many bytes of the log, where it waits for that; whether more is left. For times of leisure."""

    def is_in_memory(topic: str, queue_id: int, offset: int) -> bool:
        """Whether the message at that offset is recent enough to be read without the disk (Apache: checkInMemByConsumeOffset)."""

    def queue_entries(topic: str, queue_id: int, offset: int, count: int) -> list[tuple[int, int, int]]:
        """Physical offset, size and tags code of at most `count` records from a queue offset on."""

    def configure(config: StoreConfig) -> None:
        """Take over another configuration's limits on messages and reads; paths and file sizes stay as they are."""

    def queue_ids(topic: str) -> list[int]:
        """The queues that exist for a topic, in order."""

    def topics() -> list[str]:
        """All topics that have a queue, sorted."""

    def delete_topics(topics: Collection[str]) -> None:
        """Drop the queues of these topics; their records stay in the log until it expires.

        Of many queues most files stay until `delete_more`, which `close` does to the end.
        """

    def delete_more() -> bool:
        """Delete the files of some queues that were dropped; whether more are left. Raises OSError, then they stay."""

    def clean_expired_queues() -> int:
        """Delete queues that lead only to expired records; how many (Apache: cleanExpiredConsumerQueue)."""

    def deleted_unconsumed() -> Mapping[tuple[str, int], int]:
        """By topic and queue, how many messages were deleted since the start though a consumer still needed them."""

    def clean_unused_topics(retained: Collection[str]) -> int:
        """Delete the queues of topics not among these, but system topics and light queues; how many topics."""

    def delete_expired_log() -> None:
        """Delete expired log files in the next turns at any hour of the day (Apache: executeDeleteFilesManually)."""

    def min_physical_offset() -> int:
        """The first byte of the log."""

    def max_physical_offset() -> int:
        """The first byte behind the log's last record."""

    def flushed_offset() -> int:
        """Everything before this physical offset is on disk."""

    def when_flushed(offset: int, callback: Callable[[bool], None]) -> None:
        """Call back when the log is on disk up to `offset` (True), or when that took longer than allowed (False).

        The callback runs in the flush thread: it must hand over to its own thread at once.
        """

    def read_log(offset: int, max_bytes: int) -> memoryview | None:
        """The log's bytes from a physical offset on, whole records or not, at most to the end of their file.

        Empty at the log's end; None where the log has no such offset. Files are sent to their end, blanks included.
        """

    def newest_file_offset() -> int:
        """Where the file begins that the log's end is in (Apache: from where an empty slave is served)."""

    def last_record_offset() -> int:
        """Where the last record begins that recovery or replication passed; some offset before the log's end if none is known."""

    def append_log(offset: int, data: bytes | memoryview) -> None:
        """Append a master's bytes, which begin at the log's end; cut anywhere, whole records become visible by `dispatch`.

        An empty log begins with the first bytes' offset. From then on messages cannot be put.
        Raises LogMismatch, ReplicaDamaged, StoreFull, StoreClosed; then nothing was appended but whole records.
        """

    def check() -> list[Inconsistency]:
        """Walk log and queues and name every inconsistency; empty for a sound store."""
