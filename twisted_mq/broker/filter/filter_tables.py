"""Makes a broker's table of consumer filters, on disk or in memory."""

from __future__ import annotations

import attrs

from twisted_mq.broker.filter.bloom_filter import BloomFilter
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterData
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager, FilterTable
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.storage.files.json_file import LoadAction


@attrs.define(eq=False)
class UnsavedFilters:
    """Filters that end with the process."""

    filters: dict[str, dict[str, ConsumerFilterData]] = attrs.field(factory=dict)

    def load(self) -> list[LoadAction]:
        return []

    def save(self) -> bool:
        return False


def consumer_filters(options: BrokerOptions, table: FilterTable) -> ConsumerFilterManager:
    """The manager for a broker's options."""
    bloom_filter = BloomFilter(options.max_error_rate_of_bloom_filter, options.expect_consumer_num_use_filter)
    return ConsumerFilterManager(table, bloom_filter, options.filter_data_clean_time_span)
