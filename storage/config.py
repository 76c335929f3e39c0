"""The configuration of a store (Apache: MessageStoreConfig). Names and defaults are Apache's, in snake_case."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable

import attrs

from twisted_mq.protocol.layouts.index import DEFAULT_ENTRIES, DEFAULT_SLOTS, IndexSizes
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES, ENTRY_BYTES
from twisted_mq.protocol.messages.delay_levels import DEFAULT_DELAY_LEVELS
from twisted_mq.storage.files.paths import StorePaths

QUEUE_ENTRIES_A_FILE = 300_000


class FlushDiskType(enum.StrEnum):
    """When a message counts as stored and its send is answered: after or before the flush (Apache: FlushDiskType)."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


def physical_memory_bytes() -> int:
    """Return the machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _positive(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value <= 0:
        raise ValueError(f"{attribute.name} must be positive, got {value}")


def _whole_entries(entry_bytes: int) -> Callable[[object, attrs.Attribute[int], int], None]:
    def check(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
        if value <= 0 or value % entry_bytes:
            raise ValueError(f"{attribute.name} must be a multiple of {entry_bytes}, got {value}")

    return check


def _hours(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not all(one.strip().isdecimal() and int(one) < 24 for one in value.split(";") if one.strip()):
        raise ValueError(f"{attribute.name} must be hours from 0 to 23 separated by semicolons, got {value!r}")


@attrs.frozen(kw_only=True)
class StoreConfig:
    """Configuration of one store. Sizes in bytes, times in ms."""

    store_path_root_dir: str
    store_path_commit_log: str | None = None
    mapped_file_size_commit_log: int = attrs.field(default=1 << 30, validator=_positive)
    mapped_file_size_consume_queue: int = attrs.field(
        default=QUEUE_ENTRIES_A_FILE * ENTRY_BYTES, validator=_whole_entries(ENTRY_BYTES)
    )
    mapper_file_size_batch_consume_queue: int = attrs.field(
        default=QUEUE_ENTRIES_A_FILE * BATCH_ENTRY_BYTES, validator=_whole_entries(BATCH_ENTRY_BYTES)
    )
    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    flush_interval_commit_log_ms: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval_ms: int = 10_000
    flush_commit_log_timed: bool = True
    flush_interval_consume_queue_ms: int = 1000
    flush_consume_queue_least_pages: int = 2
    flush_consume_queue_thorough_interval_ms: int = 60_000
    flush_checkpoint_interval_ms: int = 1000
    sync_flush_timeout_ms: int = 5000
    max_message_size: int = attrs.field(default=4 << 20, validator=_positive)
    max_filter_message_size: int = 16_000
    max_transfer_bytes_on_message_in_memory: int = 256 << 10
    max_transfer_count_on_message_in_memory: int = 32
    max_transfer_bytes_on_message_in_disk: int = 64 << 10
    max_transfer_count_on_message_in_disk: int = 8
    access_message_in_memory_max_ratio: int = 40
    data_read_ahead_enable: bool = True
    """Lets the kernel read the log ahead of the reader."""
    check_crc_on_recover: bool = True
    message_delay_level: str = DEFAULT_DELAY_LEVELS
    message_index_enable: bool = True
    max_hash_slot_num: int = attrs.field(default=DEFAULT_SLOTS, validator=_positive)
    max_index_num: int = attrs.field(default=DEFAULT_ENTRIES, validator=_positive)
    max_msgs_num_batch: int = 64
    """The most records that a search by key returns."""
    file_reserved_time: int = 72
    """In hours, as in Apache."""
    delete_when: str = attrs.field(default="04", validator=_hours)
    delete_file_batch_max: int = 10
    clean_file_forcibly_enable: bool = True
    redelete_hanged_file_interval_ms: int = 120_000
    disk_max_used_space_ratio: int = 75
    disk_space_clean_forcibly_ratio: int = 85
    disk_space_warning_level_ratio: int = 90
    store_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
    """The address and port written into each record: 8 bytes for IPv4, 20 for IPv6; 127.0.0.1:10911 by default."""
    physical_memory: int = attrs.field(factory=physical_memory_bytes)
    commit_log_allocation_step: int = attrs.field(default=8 << 20, validator=_positive)
    """The bytes after the last record for which disk space is taken. Not in Apache, which takes none."""
    commit_log_prepare_bytes: int = 32 << 20
    """The distance to the end of a longer commit log file at which the next file is made. Apache makes it two files ahead."""
    warm_mapped_file_enable: bool = False
    flush_least_pages_when_warm_mapped_file: int = 4096
    transient_store_pool_enable: bool = False
    transient_store_pool_size: int = 5
    fast_fail_if_no_buffer_in_store_pool: bool = False
    commit_interval_commit_log_ms: int = 200
    commit_commit_log_least_pages: int = 4
    commit_commit_log_thorough_interval_ms: int = 200
    enable_consume_queue_ext: bool = False
    mapped_file_size_consume_queue_ext: int = attrs.field(default=48 << 20, validator=_positive)
    recovery_scan_bytes: int = 64 << 20
    """The bytes of the log that a start reads if files are longer. Not in Apache, which reads whole files."""
    consume_queue_allocation_step: int = attrs.field(default=64 << 10, validator=_positive)

    @property
    def paths(self) -> StorePaths:
        """The files of this store."""
        return StorePaths(self.store_path_root_dir, self.store_path_commit_log)

    @property
    def index_sizes(self) -> IndexSizes:
        """The size of an index file."""
        return IndexSizes(self.max_hash_slot_num, self.max_index_num)

    @property
    def hot_bytes(self) -> int:
        """The bytes before the log's end in which a record counts as in memory (Apache: accessMessageInMemoryMaxRatio)."""
        return int(self.physical_memory * (self.access_message_in_memory_max_ratio / 100.0))
