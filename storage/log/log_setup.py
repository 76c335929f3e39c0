"""Makes the commit log for a configuration."""

from __future__ import annotations

from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.files.next_file import NextFile
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.log.transient_pool import BufferedCommitLog, TransientStorePool


def make_commit_log(config: StoreConfig, allocate: Allocate = posix_fallocate, sync: Sync = fdatasync) -> CommitLog:
    """Return a log that is not loaded yet. If its files are long, they are made in advance."""
    directory, size = config.paths.commit_log, config.mapped_file_size_commit_log
    step = config.commit_log_allocation_step
    log = CommitLog(directory, size, step, allocate)
    if config.transient_store_pool_enable:
        pool = TransientStorePool(config.transient_store_pool_size, size)
        fast_fail = config.fast_fail_if_no_buffer_in_store_pool
        log = BufferedCommitLog(directory, size, step, pool, fast_fail=fast_fail, allocate=allocate)
    if 0 < config.commit_log_prepare_bytes < size:
        warm = config.warm_mapped_file_enable
        next_file = NextFile(
            directory, size, step, warm_pages=_warm_pages(config) if warm else None, allocate=allocate, sync=sync
        )
        log.prepare_files(next_file, size if warm else config.commit_log_prepare_bytes)
    return log


def _warm_pages(config: StoreConfig) -> int:
    """Return after how many pages a file is flushed while it is warmed: only under synchronous flush it is flushed at all."""
    sync_flush = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
    return config.flush_least_pages_when_warm_mapped_file if sync_flush else 0
