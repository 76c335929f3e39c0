"""Pop consumption: the broker hands messages to whoever of a group asks, and again where nobody acknowledges them.

Apache: PopMessageProcessor and its services, without the buffer for check points (enablePopBufferMerge, off by default)
and without the check points in RocksDB (popConsumerKVServiceEnable, off by default). A pop puts a check point into the
revive log before its answer leaves, and so does an acknowledgement; whatever the log does not show as acknowledged in
its time goes to the group's retry topic of the topic.
"""
