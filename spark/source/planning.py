"""What a read of stores is to cover: which of their files, from where on, and up to where it stays the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.source.log_end import complete_end, confirmed_end
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import LogFile, Store, list_log_files, stores_named

Ends = Mapping[str, int]
"""The physical offset at which the log of each store ends for a read, by the store's URI."""


def stores_of(options: ReadOptions) -> tuple[Store, ...]:
    """The stores that a read names. Raises NoCommitLog, WrongOption."""
    return stores_named(options.paths, options.broker_names)


def log_end(store: Store, files: Sequence[LogFile], options: ReadOptions) -> int:
    """Where a store's log ends just now: behind its last whole record, or at what replicas have. Raises WrongOption."""
    end = complete_end(store, files)
    if not options.until_confirmed:
        return end
    confirmed = confirmed_end(store)
    if not confirmed:
        raise WrongOption("endOffset", "confirmed", f"the checkpoint of {store.name} does not say what replicas have")
    return min(end, confirmed)


def log_ends(options: ReadOptions) -> Ends:
    """Where the logs of all stores end just now. Raises NoCommitLog, WrongOption."""
    return {store.uri: log_end(store, list_log_files(store), options) for store in stores_of(options)}


def plan_ranges(options: ReadOptions, ends: Ends) -> list[StoreRange]:
    """What is read of each store up to these ends. Raises NoCommitLog."""
    return [
        StoreRange(
            store,
            list_log_files(store),
            options.start_offset,
            min(options.end_offset, ends[store.uri]),
            ends[store.uri],
        )
        for store in stores_of(options)
    ]
