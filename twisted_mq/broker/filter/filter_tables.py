"""Makes a broker's consumer filters."""

from __future__ import annotations

from twisted_mq.broker.filter.bloom_filter import BloomFilter
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager, FilterTable
from twisted_mq.broker.options import BrokerOptions


def consumer_filters(options: BrokerOptions, table: FilterTable) -> ConsumerFilterManager:
    """The manager for a broker's options."""
    bloom_filter = BloomFilter(options.max_error_rate_of_bloom_filter, options.expect_consumer_num_use_filter)
    return ConsumerFilterManager(table, bloom_filter, options.filter_data_clean_time_span)
