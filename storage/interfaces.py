"""The seam between the broker and a message store, and the values that cross it.

Two stores provide it: `message_store.FileMessageStore`, and `memory.memory_store.MemoryMessageStore` without files. Both
pass the contract tests in tests/storage/test_store_contract.py. All calls come from one thread, the reactor's. Only
flushing happens elsewhere, see `IMessageStore.when_flushed`.
"""

# mypy: disable-error-code="misc,empty-body"
# zope interfaces declare methods without self and without bodies

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs
from zope.interface import Attribute, Interface

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.text.properties import PROPERTY_DELAY_TIME_LEVEL
from twisted_mq.storage.config import StoreConfig

QueueKey: TypeAlias = tuple[str, int]
"""Topic and queue id."""


class PutStatus(enum.Enum):
    """The result of an append (Apache: PutMessageStatus)."""

    PUT_OK = enum.auto()
    MESSAGE_ILLEGAL = enum.auto()
    PROPERTIES_SIZE_EXCEEDED = enum.auto()
    SERVICE_NOT_AVAILABLE = enum.auto()
    OS_PAGE_CACHE_BUSY = enum.auto()
    UNKNOWN_ERROR = enum.auto()


class Shut(enum.Enum):
    """The reasons why a store refuses messages. A reason outweighs those below it. The values are texts for people."""

    NOT_STARTED = "the message store is not started"
    SHUT_DOWN = "the message store has been shut down"
    SLAVE = "the messages come from the master"
    DISK_FAILED = "the disk lost or refused data"
    DISK_FULL = "the broker's disk is full"
    PAGE_CACHE_BUSY = "all buffers wait for the disk"

    @property
    def status(self) -> PutStatus:
        """The status that a put returns for this reason."""
        return PutStatus.OS_PAGE_CACHE_BUSY if self is Shut.PAGE_CACHE_BUSY else PutStatus.SERVICE_NOT_AVAILABLE


class GetStatus(enum.Enum):
    """The result of reading a queue (Apache: GetMessageStatus)."""

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
    """Never returned by a store. The broker answers it to a reader whose group got another offset."""

    __hash__ = object.__hash__
    """Without a call of Python code, as Enum's is: each pull looks its status up in a table."""


@attrs.define(eq=False)
class InnerMessage:
    """A message on its way into the store (Apache: MessageExtBrokerInner).

    `born_host` is 8 bytes (IPv4 and port) or 20 (IPv6 and port), as in the record. `properties` is the record's text form
    in UTF-8, `property_map` the same, parsed. `tags_code` goes into the queue entry.
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
    """Messages of one topic and queue on their way into the store, to be written back to back.

    `shared` has the fields that all messages share; its body, properties, flag and tags code are ignored. The sequences have
    one item for each message. `tags_codes` go into the queue entries. The properties of every message end with `suffix`.
    `alike` is True if all bodies are known to have one length, and all properties too. Such batches are written faster.
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
        """Yield each as a message of its own, with the property map of `shared`."""
        columns = zip(self.flags, self.bodies, self.properties, self.tags_codes, strict=True)
        for flag, body, properties, tags_code in columns:
            properties += self.suffix
            yield attrs.evolve(self.shared, flag=flag, body=body, properties=properties, tags_code=tags_code)


@attrs.define(eq=False)
class PlainMessages:
    """Ordinary messages on their way into the store, as columns with one item for each message.

    Topics, times and properties may have one value for all messages in place of a column. A topic has at most 127 bytes.
    `properties` are pieces of the records' text form in UTF-8, one after the other, of 32,767 bytes together at most.
    `born_host` has 8 or 20 bytes. The sys flag has no bit for inner batches or for messages outside of queues. `alike` is True if
    all bodies are known to have one length, all topics, and all texts of each column of properties. Such messages are stored
    faster. Those of the schedule topic are `delayed`: the times at which their levels are due take the place of
    tags codes. Level n is in queue n - 1. `prepared_offsets` are the places of the half messages that are committed.
    """

    topics: str | Sequence[str]
    queue_ids: Sequence[int]
    bodies: Sequence[bytes]
    properties: Sequence[bytes | Sequence[bytes]]
    tags_codes: Sequence[int]
    born_timestamps: int | Sequence[int]
    born_host: bytes
    flag: int
    sys_flag: int
    reconsume_times: int
    alike: bool = False
    delayed: bool = False
    prepared_offsets: int | Sequence[int] = 0

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def queues(self) -> Iterator[QueueKey]:
        """Yield the topic and queue of each."""
        topics = itertools.repeat(self.topics) if isinstance(self.topics, str) else self.topics
        return zip(topics, self.queue_ids)  # noqa: B905  # one topic has no end

    def each(self) -> Iterator[InnerMessage]:
        """Yield each as a message of its own, with a property map that has only its delay level."""
        texts = zip(
            *[itertools.repeat(text) if isinstance(text, bytes) else text for text in self.properties], strict=False
        )
        times = self.born_timestamps
        born = itertools.repeat(times) if isinstance(times, int) else times
        places = self.prepared_offsets
        prepared = itertools.repeat(places) if isinstance(places, int) else places
        columns = zip(self.queues, self.bodies, texts, self.tags_codes, born, prepared, strict=False)
        for (topic, queue_id), body, properties, tags_code, born_timestamp, prepared_offset in columns:
            yield InnerMessage(
                topic,
                queue_id,
                body,
                b"".join(properties),
                {PROPERTY_DELAY_TIME_LEVEL: str(queue_id + 1)} if self.delayed else {},
                tags_code,
                self.flag,
                self.sys_flag,
                born_timestamp,
                self.born_host,
                self.reconsume_times,
                prepared_offset,
            )


@attrs.define(eq=False)
class Places:
    """The places of stored messages, as columns. `end_offset` is the first byte after the last message.

    `by_queue` has each queue's number of messages and of bytes, by topic and queue id.
    """

    queue_offsets: Sequence[int] = ()
    physical_offsets: Sequence[int] = ()
    sizes: Sequence[int] = ()
    end_offset: int = -1
    by_queue: Mapping[QueueKey, tuple[int, int]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.queue_offsets)


@attrs.define(eq=False)
class PutResult:
    """The place of a stored message, or of the first message of a batch, or the reason why it was refused.

    `end_offset` is the first byte after the record or batch. An inner batch is one record of `message_count` messages. `shut`
    is the reason if the store refuses all messages.
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
    """The result of a read: whole stored records in queue order, ready for the wire.

    `records` are read-only bytes-like views, valid until the store is closed. `next_begin_offset` is the offset where
    the reader continues, whatever the status. Offsets are queue offsets. `message_count` is the number of messages in the
    records of a batch queue, or of a joined read; 0 if each record is one message.
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
    """The result of a search by key: whole stored records, oldest first, as views like those of GetResult.

    The end of the index is 0 if nothing was found (Apache: QueryMessageResult). Two keys can have the same hash, so a record
    may not have the key: the caller compares the keys (Apache's client does).
    """

    records: Sequence[memoryview | bytes] = ()
    index_last_update_timestamp: int = 0
    index_last_update_physical_offset: int = 0


@attrs.frozen
class Inconsistency:
    """A defect of a store: the file, the position or offset in it, and a description."""

    path: str
    offset: int
    problem: str

    def __str__(self) -> str:
        return f"{self.path} at {self.offset}: {self.problem}"


RecordTest = Callable[[memoryview | bytes], bool]
"""Returns whether a reader wants a stored record. Called for entries whose tags code the reader wants."""

IsBatchTopic = Callable[[str], bool | None]
"""Returns whether a topic has batch queues (queue.type=BatchCQ); None if the topic is not known."""

ArrivalListener = Callable[[str, int, int, int, int], None]
"""Called on dispatch: topic, queue id, queue offset of the message, tags code, store timestamp.

For messages that were put together it is called when all of them are visible: once for each tags code, with the offset of
the first message that has it.
"""


class Appended(Protocol):
    """The records that are appended, of which `pending` are not visible yet."""

    pending: Sequence[object]


class IMessageStore(Interface):
    """A message store (Apache: MessageStore)."""

    dispatcher: Appended = Attribute("The same object for the store's life; `dispatch` empties it.")

    def start() -> None:
        """Lock the directory, recover, and start flushing in the background. Raises StoreError subclasses."""

    def close() -> None:
        """Flush everything, write the checkpoint, remove the abort file and free the lock. A second call does nothing."""

    def put_message(message: InnerMessage) -> PutResult:
        """Append one message. Faults of the message are not raised: the status reports them.

        Readers see the message only after `dispatch`.
        """

    def put_messages(batch: InnerBatch) -> PutResult:
        """Append the messages of a batch back to back, all or none (Apache: putMessages)."""

    def put_plain(messages: PlainMessages) -> Places:
        """Append plain messages up to the first that needs `put_message`; return the places of those that were appended.

        A message needs `put_message` if its queue is missing or a batch queue, if the log's or the queue's file has no room
        for it, or if the store refuses it. Messages of one queue may become visible together.
        """

    def dispatch(arrived: ArrivalListener | None = None) -> bool:
        """Make visible all appended messages that may be visible, and report them to `arrived`.

        Under synchronous flush these are only the flushed ones. A master's bytes (`append_log`) become visible in parts: returns
        True if more are left, for another call in a later turn.
        """

    def get_message(
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags_codes: Collection[int] | None,
        matches: RecordTest | None = None,
        joined: bool = False,
    ) -> GetResult:
        """Read a queue from `offset` on.

        Entries whose tags code is not in `tags_codes` (32 bits each), and records for which `matches` returns False, are
        skipped. With `joined`, neighbours in the log may come as one view, and `message_count` says how many messages were
        read.
        """

    def min_offset_in_queue(topic: str, queue_id: int) -> int:
        """Return the first readable queue offset; 0 for an unknown queue."""

    def max_offset_in_queue(topic: str, queue_id: int) -> int:
        """Return the offset after the last visible message; 0 for an unknown queue."""

    def offset_by_time(topic: str, queue_id: int, timestamp_ms: int, boundary: BoundaryType) -> int:
        """Return the queue offset of the message stored at that time (Apache: getOffsetInQueueByTime)."""

    def store_timestamp(topic: str, queue_id: int, offset: int) -> int:
        """Return the store time of the message at that queue offset in ms; -1 if the queue has no such message."""

    def earliest_message_time(topic: str, queue_id: int) -> int:
        """Return the store time of the queue's first readable message in ms; -1 if it has no message."""

    def look_message(physical_offset: int) -> bytes | None:
        """Return the stored record that is proved to begin there, else None.

        The proof is an entry of the record's queue, or that the record was just put. Bytes in a body that look like a record and
        name their own place are no proof. A record that no queue has is found by `walk_to_message` only.
        """

    def walk_to_message(physical_offset: int) -> Generator[None, None, bytes | None]:
        """Find the same by walking from record to record, in steps of a few ms; the generator returns the record or None."""

    def query_message(topic: str, key: str, max_count: int, begin: int, end: int) -> QueryResult:
        """Return the newest visible records of a topic with a key, stored from `begin` to `end` ms (Apache: queryMessage).

        A key is a message's unique key or one of its KEYS. Times are compared in whole seconds after the index file's first.
        """

    def build_index(max_bytes: int) -> bool:
        """Index about `max_bytes` of the log's records that wait for it; return whether more are left. For idle times."""

    def is_in_memory(topic: str, queue_id: int, offset: int) -> bool:
        """Return whether the message at that offset can be read without the disk (Apache: checkInMemByConsumeOffset)."""

    def queue_entries(topic: str, queue_id: int, offset: int, count: int) -> list[tuple[int, int, int]]:
        """Return the physical offset, size and tags code of at most `count` records from a queue offset on."""

    def configure(config: StoreConfig) -> None:
        """Take over the limits on messages and reads of another configuration. Paths and file sizes stay the same."""

    def queue_ids(topic: str) -> list[int]:
        """Return the queues that exist for a topic, in order."""

    def topics() -> list[str]:
        """Return all topics that have a queue, sorted."""

    def delete_topics(topics: Collection[str]) -> None:
        """Drop the queues of these topics; their records stay in the log until it expires.

        If there are many queues, most files stay until `delete_more` deletes them; `close` deletes the rest.
        """

    def delete_more() -> bool:
        """Delete the files of some dropped queues; return whether more are left. Raises OSError; then the files stay."""

    def clean_expired_queues() -> int:
        """Delete queues whose records have all expired; return how many (Apache: cleanExpiredConsumerQueue)."""

    def deleted_unconsumed() -> Mapping[tuple[str, int], int]:
        """Return, by topic and queue, how many messages were deleted since the start although a consumer still needed them."""

    def clean_unused_topics(retained: Collection[str]) -> int:
        """Delete the queues of all topics not in `retained`, except system topics and light queues; return how many topics."""

    def delete_expired_log() -> None:
        """Delete expired log files in the next turns, at any hour of the day (Apache: executeDeleteFilesManually)."""

    def min_physical_offset() -> int:
        """Return the physical offset of the log's first byte."""

    def max_physical_offset() -> int:
        """Return the physical offset of the first byte after the log's last record."""

    def flushed_offset() -> int:
        """Return the physical offset up to which the log is on disk."""

    def when_flushed(offset: int, callback: Callable[[bool], None]) -> None:
        """Call back with True when the log is on disk up to `offset`, or with False if that takes longer than allowed.

        The callback runs in the flush thread. It must hand over to its own thread at once.
        """

    def read_log(offset: int, max_bytes: int) -> memoryview | None:
        """Return the log's bytes from a physical offset on, at most to the end of their file; they need not be whole records.

        Empty at the log's end; None if the log does not have the offset. Files are sent to their end, blank records included.
        """

    def newest_file_offset() -> int:
        """Return the first offset of the file in which the log ends (Apache: an empty slave is served from there)."""

    def last_record_offset() -> int:
        """Return the offset of the last record that recovery or replication has read.

        If none is known, it is some offset before the log's end.
        """

    def append_log(offset: int, data: bytes | memoryview) -> None:
        """Append a master's bytes at the log's end. They may be cut anywhere; `dispatch` makes whole records visible.

        An empty log begins at the offset of the first bytes. After the first call messages cannot be put.
        Raises LogMismatch, ReplicaDamaged, StoreFull, StoreClosed; then nothing was appended except whole records.
        """

    def check() -> list[Inconsistency]:
        """Compare the log with the queues and return every inconsistency; empty for a sound store."""
