"""Serves pop consumption: the broker hands messages to any member of a group that asks, and hands them out again if they
are not acknowledged.

Apache: PopMessageProcessor and its services, without the buffer for check points (enablePopBufferMerge, off by default)
and without the check points in RocksDB (popConsumerKVServiceEnable, off by default). A pop writes a check point to the
revive log before its answer leaves; an acknowledgement is written there, too. Messages that the log does not show as
acknowledged in time go to the group's retry topic for the topic.
"""
