"""The broker's settings: one field for each property that it uses (Apache: BrokerConfig, MessageStoreConfig,
NettyServerConfig), with the same key and default.

File, command line, GET_BROKER_CONFIG and the table in docs/reference all come from these fields. Units are in the docs and are
those of Apache's keys: "Mills", "Millis", "Interval" and "Period" without a unit are milliseconds.
"""

from __future__ import annotations

import enum
import os

import attrs

from twisted_mq.config.environment import in_home, local_host_name, name_servers_of_environment
from twisted_mq.config.limits import PORT, Limits
from twisted_mq.config.metrics_options import MetricsOptions
from twisted_mq.config.options import option
from twisted_mq.config.values import hours
from twisted_mq.storage.config import FlushDiskType

LISTEN_PORT = 10911
"""The port that Apache's start-up code sets before it reads the file; BrokerConfig's own default is 6888."""


class BrokerRole(enum.StrEnum):
    """The role of a broker in its group (Apache: BrokerRole)."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


class MessageRequestMode(enum.StrEnum):
    """The ways in which a group consumes (Apache: MessageRequestMode)."""

    PULL = "PULL"
    POP = "POP"


@attrs.define(kw_only=True)
class BrokerOptions(MetricsOptions):
    """Settings of one broker. Mutable: the owner applies the changes that remote updates may make."""

    # identity

    broker_name: str = option(attrs.Factory(local_host_name), "name shared by a master and its slaves", type="string")
    broker_cluster_name: str = option("DefaultCluster", "cluster that the broker belongs to")
    broker_id: int = option(
        0, "0 for a master, above 0 for a slave, -1 if a controller assigns it", type="long", low=-1
    )
    broker_role: BrokerRole = option(  # noqa: RUF009 an attrs field, not a shared default
        BrokerRole.ASYNC_MASTER, "role, and whether sends wait for slaves", type=BrokerRole
    )
    region_id: str = option("DefaultRegion", "region named in send answers (MSG_REGION)")
    broker_config_path: str | None = option(
        None,
        "file for remote updates; a file given at the start replaces it",
        type="string",
    )

    # where it listens and what it announces

    bind_address: str = option("0.0.0.0", "address to listen on")
    listen_port: int = option(LISTEN_PORT, "port for clients; the fast port is two below", limits=PORT)
    ha_listen_port: int = option(0, "port for slaves; 0: listenPort + 1", limits=PORT)
    broker_ip1: str | None = option(
        None,
        "address registered for clients; unset: the interface that reaches the name server",
        type="string",
        key="brokerIP1",
    )
    broker_ip2: str | None = option(
        None, "address registered for slaves; unset: brokerIP1", type="string", key="brokerIP2"
    )
    server_channel_max_idle_time_seconds: int = option(
        120, "seconds without data after which a connection is closed", low=1
    )

    grpc_server_port: int = option(-1, "port for gRPC clients of 5.x; 0 a free one, -1 none; ours", low=-1, high=65535)
    proxy_config_path: str | None = option(None, "rmq-proxy.json with settings of the gRPC port; ours", type="string")

    # name servers

    namesrv_addr: str | None = option(
        attrs.Factory(name_servers_of_environment),
        "name servers, host:port separated by semicolons",
        type="string",
    )
    fetch_namesrv_addr_by_address_server: bool = option(
        False, "without namesrvAddr, read the name servers from an HTTP page"
    )
    fetch_namesrv_addr_interval: int = option(10000, "ms between reads of that page", type="long", low=1)
    namesrv_domain: str = option(
        "jmenv.tbsite.net",
        "host or host:port of the page; a system property of Apache's broker",
        key="rocketmq.namesrv.domain",
    )
    namesrv_domain_subgroup: str = option(
        "nsaddr",
        "the page's name below /rocketmq/; a system property of Apache's broker",
        key="rocketmq.namesrv.domain.subgroup",
    )
    fetch_name_srv_addr_by_dns_lookup: bool = option(False, "use all addresses of each host name in namesrvAddr")
    update_name_server_addr_period: int = option(120000, "ms between look-ups of these names", low=1)
    register_name_server_period: int = option(30000, "ms between registrations, limited to 10000 to 60000", low=1)
    register_broker_timeout_mills: int = option(24000, "ms to wait for a name server's answer", low=1, remote=True)
    send_heartbeat_timeout_millis: int = option(1000, "ms to wait for the answer to a broker heartbeat", low=1)
    broker_heartbeat_interval: int = option(
        1000,
        "ms between heartbeats to the name servers in acting-master mode",
        low=100,
    )
    broker_not_active_timeout_millis: int = option(
        10000,
        "ms without a heartbeat after which name servers remove such a broker from routes",
        type="long",
        low=1,
    )
    compressed_register: bool = option(False, "compress registrations", remote=True)
    force_register: bool = option(True, "register in each period even if nothing changed", has_effect=False)
    enable_single_topic_register: bool = option(False, "register only a changed topic", has_effect=False)
    enable_split_registration: bool = option(False, "split a registration of many topics", has_effect=False)
    split_registration_size: int = option(800, "topics in one part", low=1, has_effect=False)
    enable_slave_acting_master: bool = option(
        False,
        "the slave with the lowest id replaces a lost master; set it for the whole group",
    )
    enable_remote_escape: bool = option(
        False,
        "an acting slave sends due delayed and timed messages, and half messages, to other masters",
    )
    skip_pre_online: bool = option(
        False,
        "a master in this mode registers at once, without asking its slaves about their actions during its absence",
    )
    compatible_with_old_name_srv: bool = option(
        True,
        "send heartbeats as queries of the data version, which name servers of 4.x support",
    )

    forward_timeout: int = option(
        3000, "ms to wait for another broker that holds part of a static topic", type="long", low=1
    )

    # topics, groups, permissions

    broker_permission: int = option(6, "permission of clients: 4 read, 2 write, 6 both", low=0, high=7, remote=True)
    default_topic_queue_nums: int = option(8, "queues of the default topic, the maximum for a created topic", low=1)
    auto_create_topic_enable: bool = option(True, "a send creates a missing topic like the default topic", remote=True)
    auto_create_subscription_group: bool = option(True, "a consumer creates its missing group", remote=True)
    cluster_topic_enable: bool = option(True, "create a topic with the name of the cluster")
    broker_topic_enable: bool = option(True, "create a topic with the name of the broker")
    trace_topic_enable: bool = option(False, "create a topic for message traces")
    msg_trace_topic_name: str = option("RMQ_SYS_TRACE_TOPIC", "name of the topic for traces")
    trace_on: bool = option(True, "send answers enable traces (TRACE_ON)")
    revive_queue_num: int = option(8, "queues of the topic for pop revivals", low=1)
    validate_system_topic_when_update_topic: bool = option(
        True, "system topics cannot be updated by an admin", remote=True
    )
    enable_mixed_message_type: bool = option(False, "allow topics with the attribute message.type=MIXED", remote=True)

    # sends

    max_message_size: int = option(4194304, "maximum size of a message body in bytes", low=1, remote=True)
    max_topic_length: int = option(127, "maximum number of characters of a topic name", low=1, has_effect=False)
    auto_message_version_on_topic_len: bool = option(
        True, "longer topic names are stored as message version 2", has_effect=False
    )
    transaction_members_only: bool = option(
        True,
        "a transaction is ended from the host that sent its half message, or by a connection that is registered as a"
        " producer of its group; ours",
    )
    producer_group_rights_enable: bool = option(
        True,
        "under access control, only clients that may publish as a producer group (Pub on Group:NAME) are asked about"
        " transactions that another connection began, and end them; ours",
    )
    record_rights_enable: bool = option(
        True,
        "under access control a request that names a message by its place in the log needs the right on the message's own"
        " topic; ours",
    )
    reject_transaction_message: bool = option(False, "refuse transactional sends", remote=True)
    store_reply_message_enable: bool = option(True, "store replies too", remote=True)
    reply_to_any_topic_enable: bool = option(
        False,
        "allow replies to other topics than the cluster's reply topic, and create them; ours",
    )
    transaction_time_out: int = option(
        6000,
        "ms after which a producer is asked about its transaction",
        type="long",
        low=0,
        remote=True,
    )
    transaction_check_interval: int = option(30000, "ms between checks for undecided transactions", type="long", low=1)
    transaction_check_max: int = option(
        15, "times that a producer is asked before a transaction is given up", low=1, remote=True
    )
    transaction_op_msg_max_size: int = option(
        4096, "bytes of decided transactions that are written at once", low=1, remote=True
    )
    transaction_op_batch_interval: int = option(
        3000,
        "ms that decided transactions wait to be written together",
        low=0,
        remote=True,
    )
    transaction_metric_flush_interval: int = option(
        3000, "ms between writes of the counts of transactions", type="long", low=1
    )
    start_accept_send_request_time_stamp: int = option(0, "ms since 1970 before which sends are refused", type="long")
    send_thread_pool_queue_capacity: int = option(
        10000, "sends that may wait for an answer; above it SYSTEM_BUSY", low=1
    )
    broker_fast_failure_enable: bool = option(True, "refuse requests that waited too long", remote=True)
    wait_time_mills_in_send_queue: int = option(200, "ms that a send may wait", type="long", low=0, remote=True)
    wait_time_mills_in_pull_queue: int = option(
        5000,
        "ms that a pull, pop or peek may wait",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_lite_pull_queue: int = option(
        5000,
        "ms that a lite pull may wait",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_heartbeat_queue: int = option(
        31000,
        "ms that a heartbeat may wait",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_transaction_queue: int = option(
        3000,
        "ms that the end of a transaction may wait",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_ack_queue: int = option(
        3000,
        "ms that an acknowledgement of a pop may wait",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_admin_broker_queue: int = option(
        5000,
        "ms that any other request may wait",
        type="long",
        low=0,
        remote=True,
    )
    os_page_cache_busy_time_out_mills: int = option(
        1000,
        "ms of one append after which the store counts as busy",
        type="long",
        low=1,
        has_effect=False,
    )

    # pulls

    long_polling_enable: bool = option(
        True, "a pull without messages waits for the time that its client requests", remote=True
    )
    short_polling_time_mills: int = option(
        1000, "ms that a pull waits without long polling", type="long", low=1, remote=True
    )
    lite_pull_message_enable: bool = option(True, "serve lite pulls", remote=True)
    reject_pull_consumer_enable: bool = option(
        False,
        "do not register consumers that pull by themselves, and refuse their pulls",
        remote=True,
    )
    slave_read_enable: bool = option(False, "slaves serve pulls", remote=True)
    pull_thread_pool_queue_capacity: int = option(
        100000,
        "pulls that may wait for messages, including lite pulls; above it SYSTEM_BUSY",
        low=1,
        remote=True,
    )
    lite_pull_thread_pool_queue_capacity: int = option(
        100000,
        "lite pulls that may wait for messages; above it SYSTEM_BUSY",
        low=1,
        has_effect=False,
    )
    max_transfer_bytes_on_message_in_memory: int = option(
        262144, "bytes of one pull answer from recent messages", low=1, remote=True
    )
    max_transfer_count_on_message_in_memory: int = option(32, "recent messages in one pull answer", low=1, remote=True)
    max_transfer_bytes_on_message_in_disk: int = option(
        65536, "bytes of one pull answer from old messages", low=1, remote=True
    )
    max_transfer_count_on_message_in_disk: int = option(8, "old messages in one pull answer", low=1, remote=True)
    max_filter_message_size: int = option(
        16000,
        "bytes of queue entries that one pull scans, at most 4096 entries of 20",
        low=1,
        remote=True,
    )
    access_message_in_memory_max_ratio: int = option(
        40, "percent of memory that limits recent messages", low=0, high=100
    )
    data_read_ahead_enable: bool = option(True, "let the kernel read ahead in the log", remote=True)
    use_server_side_reset_offset: bool = option(
        True,
        "the broker applies a reset offset, not the consumers",
        remote=True,
    )
    enable_property_filter: bool = option(False, "serve SQL92 expressions", remote=True)
    filter_support_retry: bool = option(
        False, "filter retried messages by the expression of their original topic", remote=True
    )
    expect_consumer_num_use_filter: int = option(
        32,
        "groups that filter one topic, for the size of the bit maps",
        low=1,
        high=10000,
    )
    max_error_rate_of_bloom_filter: int = option(
        20, "allowed percentage of false positives of the bit maps", low=1, high=99
    )
    filter_data_clean_time_span: int = option(
        86400000, "ms that the filter of an absent group is kept", type="long", low=0
    )
    enable_calc_filter_bit_map: bool = option(False, "store bit maps of matching groups with the queues")

    # consumers

    notify_consumer_ids_changed_enable: bool = option(True, "notify members when their group changes", remote=True)
    flush_consumer_offset_interval: int = option(5000, "ms between writes of the consumer offsets to disk", low=1)
    channel_expired_timeout: int = option(
        120000,
        "ms without a heartbeat after which a client is removed",
        type="long",
        low=1,
    )
    rebalance_lock_max_live_time: int = option(
        60000,
        "ms without renewal after which the lock of an orderly queue expires; ours, a system property of Apache's broker",
        type="long",
        low=1,
    )
    subscription_expired_timeout: int = option(
        600000,
        "ms after which an unused subscription is removed",
        type="long",
        low=1,
        has_effect=False,
    )
    enable_register_producer: bool = option(True, "register producers by their heartbeats", has_effect=False)
    server_load_balancer_enable: bool = option(
        True, "the broker divides queues among consumers that ask; false: each gets all"
    )
    default_message_request_mode: MessageRequestMode = option(  # noqa: RUF009 an attrs field, not a shared default
        MessageRequestMode.PULL,
        "default mode (pull or pop) of consumers that ask for their queues",
        type=MessageRequestMode,
    )
    default_pop_share_queue_num: int = option(
        -1,
        "default number of additional members that pop from a queue; below 1: all of the group",
    )
    load_balance_poll_name_server_interval: int = option(
        30000,
        "ms between checks for changed routes of divided topics",
        type="long",
        low=1,
    )

    # pop consumption

    revive_interval: int = option(1000, "ms between reads of a queue of the revive log", type="long", low=1)
    revive_max_slow: int = option(
        3, "maximum number of intervals without a read while nothing is popped", type="long", low=0
    )
    revive_scan_time: int = option(
        10000,
        "limit of one read; in ms with Apache, a number of messages here",
        type="long",
        has_effect=False,
    )
    revive_ack_wait_ms: int = option(
        180000, "ms after which an acknowledgement without a pop is skipped", type="long", low=1
    )
    enable_skip_long_awaiting_ack: bool = option(False, "such acknowledgements advance the offset of the revive group")
    skip_when_ck_re_put_reach_max_times: bool = option(
        False, "give up a message that could not be revived 17 times", key="skipWhenCKRePutReachMaxTimes"
    )
    pop_polling_size: int = option(1024, "maximum number of pops that wait for one queue of a group", low=0)
    pop_polling_map_size: int = option(
        100000,
        "maximum number of group queues that pops wait for; limited by maxPopPollingSize",
        has_effect=False,
    )
    max_pop_polling_size: int = option(100000, "maximum number of waiting pops", type="long", low=0)
    pop_long_polling_force_notify_interval: int = option(
        800,
        "number of messages that wake a pop with a filter; here only matching messages wake it",
        type="long",
        has_effect=False,
    )
    enable_pop_log: bool = option(False, "log each step of a pop", has_effect=False)
    enable_pop_buffer_merge: bool = option(
        False,
        "check points wait in memory for acknowledgements; never here",
        has_effect=False,
    )
    enable_pop_batch_ack: bool = option(False, "store the acknowledgements of the buffer together", has_effect=False)
    append_ack_async: bool = option(False, "answer acknowledgements before they are stored", has_effect=False)
    append_ck_async: bool = option(False, "answer pops before they are recorded", has_effect=False)
    enable_notify_after_pop_order_lock_release: bool = option(
        True, "notify an orderly group when it may pop a queue again"
    )
    init_pop_offset_by_check_msg_in_mem: bool = option(
        True,
        "a new group starts at the first message of a queue that is in memory",
    )
    retrieve_message_from_pop_retry_topic_v1: bool = option(
        True,
        "with enableRetryTopicV2, also consume retry topics of version 1",
    )
    enable_retry_topic_v2: bool = option(
        False, "retry topics of pops are named %RETRY%group+topic instead of %RETRY%group_topic"
    )
    clear_retry_topic_when_delete_topic: bool = option(
        True, "deleting a topic also deletes the retry topics of its pops"
    )
    pop_from_retry_probability: int = option(20, "number of 100 pops that read the retry topic first", low=0, high=100)
    priority_order_asc: bool = option(
        True,
        "pops of topics with message.type=PRIORITY read the queue of the highest number first; false: of the lowest",
    )
    pop_from_retry_probability_for_priority: int = option(
        0,
        "number of 100 pops by priority that read the retry topic first",
        low=0,
        high=100,
    )
    pop_response_return_actual_retry_topic: bool = option(
        False, "deliver retried messages with the name of their retry topic"
    )
    enable_pop_message_threshold: bool = option(
        False,
        "do not deliver more to a group that holds too many messages of a queue",
    )
    pop_inflight_message_threshold: int = option(
        10000, "limit of messages that a group holds of a queue", type="long", low=0
    )

    cold_data_flow_control_enable: bool = option(
        False, "delay groups that read too much data that is not in memory", remote=True
    )
    cg_cold_read_threshold: int = option(
        3145728, "bytes of such reads in 5 s for one group", type="long", low=0, remote=True
    )
    global_cold_read_threshold: int = option(
        104857600,
        "bytes of such reads in 5 s for all groups together",
        type="long",
        low=0,
        remote=True,
    )

    # store

    store_path_root_dir: str = option(attrs.Factory(in_home("store")), "directory of the store", type="string")
    store_path_commit_log: str | None = option(
        None, "directory of the commit log; unset: commitlog in the store's", type="string"
    )
    mapped_file_size_commit_log: int = option(1073741824, "bytes of one commit log file", low=1024)
    mapped_file_size_consume_queue: int = option(
        6000000,
        "bytes of one queue file, rounded up to entries of 20",
        limits=Limits(low=20, step=20),
    )
    mapper_file_size_batch_consume_queue: int = option(
        13800000,
        "bytes of one file of a batch queue, rounded up to entries of 46",
        limits=Limits(low=46, step=46),
    )
    message_index_enable: bool = option(True, "index messages by their keys")
    message_index_safe: bool = option(False, "repair the index at a start after a crash; always here", has_effect=False)
    max_hash_slot_num: int = option(5000000, "slots of one index file", low=1)
    max_index_num: int = option(20000000, "entries of one index file, one more than it holds", low=2)
    default_query_max_num: int = option(32, "maximum number of records found by a unique key", low=1)
    max_msgs_num_batch: int = option(64, "maximum number of records found by a key", low=1)
    check_crc_on_recover: bool = option(True, "recovery checks the checksums of bodies", key="checkCRCOnRecover")
    message_delay_level: str = option(
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
        "delays of the levels 1 and up",
    )

    # messages that wait

    flush_delay_offset_interval: int = option(
        10000, "ms between writes of the delay levels' offsets", type="long", low=1
    )
    delay_offset_update_version_step: int = option(
        200, "deliveries of delayed messages per data version", type="long", low=1
    )
    timer_wheel_enable: bool = option(True, "serve messages with any delivery time")
    timer_precision_ms: int = option(
        1000,
        "ms of one tick of the timer",
        limits=Limits(low=100, high=1000, choices=(100, 200, 500, 1000)),
    )
    timer_max_delay_sec: int = option(259200, "maximum delay of a timed message in seconds", low=1, remote=True)
    timer_roll_window_slot: int = option(172800, "ticks after which a message that waits longer is stored again", low=1)
    timer_flush_interval_ms: int = option(1000, "ms between flushes of the timer", low=1)
    mapped_file_size_timer_log: int = option(104857600, "bytes of one file of the timer's log", low=1024)
    timer_stop_enqueue: bool = option(False, "the timer accepts no messages", remote=True)
    timer_stop_dequeue: bool = option(False, "the timer delivers no messages", remote=True)
    recall_message_enable: bool = option(
        False, "allow producers to recall messages that wait for their time", remote=True
    )
    allow_recall_when_broker_not_writeable: bool = option(True, "serve recalls even if sends are refused", remote=True)
    timer_congest_num_each_slot: int = option(
        2147483647, "number of messages for one tick above which more are refused", low=1
    )

    # extensions of the queues

    enable_consume_queue_ext: bool = option(False, "queues store the store time and filter bit map of each message")
    mapped_file_size_consume_queue_ext: int = option(50331648, "bytes of one file of these", low=64)

    # flushing

    flush_disk_type: FlushDiskType = option(  # noqa: RUF009 an attrs field, not a shared default
        FlushDiskType.ASYNC_FLUSH, "answer a send after or before its flush", type=FlushDiskType
    )
    sync_flush_timeout: int = option(5000, "ms that a send waits for its flush", low=1)
    flush_interval_commit_log: int = option(500, "ms between flushes of the commit log", low=1)
    flush_commit_log_least_pages: int = option(4, "least number of 4 KiB pages for a flush", low=0)
    flush_commit_log_thorough_interval: int = option(10000, "ms after which fewer pages are flushed too", low=1)
    flush_interval_consume_queue: int = option(1000, "ms between flushes of the queues", low=1)
    flush_consume_queue_least_pages: int = option(2, "least number of 4 KiB pages for a flush of a queue", low=0)
    flush_consume_queue_thorough_interval: int = option(60000, "ms after which fewer pages are flushed too", low=1)

    flush_commit_log_timed: bool = option(
        True, "flush the commit log only at its interval, not when enough pages are written"
    )

    # writing past the page cache's mapping

    transient_store_pool_enable: bool = option(False, "write records to buffers first, then to the file; not on slaves")
    transient_store_pool_size: int = option(5, "buffers of one commit log file's size", low=1)
    fast_fail_if_no_buffer_in_store_pool: bool = option(
        False,
        "answer SYSTEM_BUSY if all buffers are in use, instead of writing to the mapping",
    )
    commit_interval_commit_log: int = option(200, "ms between commits of a buffer to its file", low=1)
    commit_commit_log_least_pages: int = option(4, "least number of 4 KiB pages for a commit", low=0)
    commit_commit_log_thorough_interval: int = option(200, "ms after which fewer pages are committed too", low=1)

    # files made ahead

    warm_maped_file_enable: bool = option(
        False, "allocate disk space and memory of a new commit log file before its use"
    )
    flush_least_pages_when_warm_maped_file: int = option(
        4096, "pages of 4 KiB between flushes then, with SYNC_FLUSH", low=1
    )

    # retention

    delete_when: str = option(
        "04",
        "hours of the day at which old files are deleted, separated by semicolons",
        parse=hours,
        remote=True,
    )
    file_reserved_time: int = option(72, "hours that commit log files are kept", low=1, remote=True)
    clean_resource_interval: int = option(10000, "ms between checks for old files", low=1)
    delete_commit_log_files_interval: int = option(
        100, "ms between deletions of two commit log files", low=0, remote=True
    )
    delete_consume_queue_files_interval: int = option(
        100, "ms between deletions of the files of two queues", low=0, remote=True
    )
    redelete_hanged_file_interval: int = option(120000, "ms after which the deletion of a file is retried", low=0)
    delete_file_batch_max: int = option(10, "maximum number of commit log files deleted at once", low=1, remote=True)
    disk_max_used_space_ratio: int = option(
        75,
        "percent of the disk above which expired files are deleted at any hour",
        low=10,
        high=95,
        remote=True,
    )
    clean_file_forcibly_enable: bool = option(
        True,
        "delete files that have not expired if the disk is almost full",
        remote=True,
    )
    disk_space_clean_forcibly_ratio: int = option(
        85, "percent above which they are deleted; limited to 30 to 85", remote=True
    )
    disk_space_warning_level_ratio: int = option(
        90,
        "percent above which sends are refused; limited to 35 to 90",
        remote=True,
    )

    # replication

    ha_master_address: str | None = option(
        None,
        "host:port of the master, for slaves; unset: asked from the name server",
        type="string",
    )
    ha_send_heartbeat_interval: int = option(5000, "ms between heartbeats to slaves", low=1)
    ha_housekeeping_interval: int = option(20000, "ms without data after which a link is closed", low=1)
    ha_transfer_batch_size: int = option(32768, "bytes of one transfer to a slave", low=1)
    ha_max_gap_not_in_sync: int = option(268435456, "bytes that a slave may lag and still count as in sync", low=0)
    ha_flow_control_enable: bool = option(False, "limit each link to maxHaTransferByteInSecond")
    max_ha_transfer_byte_in_second: int = option(
        104857600, "bytes a second of one link under flow control", type="long", low=1024
    )
    ha_allowed_slaves: str | None = option(
        None, "hosts that may replicate, separated by commas; unset: any; ours", type="string"
    )
    ha_shared_secret: str | None = option(
        None,
        "secret that master and slave share; unset: none; ours",
        type="string",
        secret=True,
    )
    ha_open_under_access_control: bool = option(
        False,
        "under access control, serve slaves without haSharedSecret and haAllowedSlaves too: every host that can connect can "
        "read the log; ours",
    )
    ha_count_registered_slaves_only: bool = option(
        True,
        "without haSharedSecret and haAllowedSlaves, a SYNC_MASTER counts only copies of hosts that are registered as its "
        "slaves, and links of other hosts are sent at most 8 MiB a second together; ours",
    )
    registration_shared_secret: str | None = option(
        None,
        "secret for registration at name servers; unset: none; ours",
        type="string",
        secret=True,
    )
    sync_broker_member_group_period: int = option(
        1000,
        "ms between queries of name servers: by a slave for its master, by a SYNC_MASTER for its slaves",
        low=100,
    )
    slave_timeout: int = option(3000, "ms that a send waits for slaves", low=1)
    total_replicas: int = option(1, "copies of each message, the master's included", low=1, has_effect=False)
    in_sync_replicas: int = option(1, "copies that a send waits for", low=1)
    min_in_sync_replicas: int = option(1, "copies below which sends are refused", low=1, has_effect=False)

    # strictly ordered topics

    order_coordinator: str | None = option(
        None,
        "ZooKeeper that stores the lists of ordered topics, HOST:PORT[,..][/chroot]; memory: in this process; ours",
        type="string",
    )
    order_session_timeout_millis: int = option(
        6000,
        "session timeout in ms: without contact the coordinator removes this broker; ours",
        low=500,
    )
    order_coordinator_auth: str | None = option(
        None,
        "user:password for the coordinator; only this user can access the broker's nodes; ours",
        type="string",
        secret=True,
    )
    order_coordinator_ca_file: str | None = option(
        None,
        "certificates (PEM) that verify the coordinator; enables TLS; ours",
        type="string",
    )
    order_coordinator_cert_file: str | None = option(
        None, "this broker's certificate (PEM) for the coordinator; ours", type="string"
    )
    order_coordinator_key_file: str | None = option(None, "key (PEM) of that certificate; ours", type="string")

    @property
    def is_slave(self) -> bool:
        """True if the messages come from a master and not from clients."""
        return self.broker_role == BrokerRole.SLAVE

    @property
    def is_sync_flush(self) -> bool:
        """True if a send is answered once it is on disk."""
        return self.flush_disk_type == FlushDiskType.SYNC_FLUSH

    @property
    def waits_for_slaves(self) -> bool:
        """True if sends wait for copies; with inSyncReplicas 1 the master's own copy is enough (Apache: CommitLog.handleHA)."""
        return self.broker_role == BrokerRole.SYNC_MASTER and self.in_sync_replicas > 1

    @property
    def sends_flushed_log(self) -> bool:
        """True if slaves get only what is on this broker's disk: no send waits for them, so that costs no send any time."""
        return self.is_sync_flush and not self.waits_for_slaves and self.order_coordinator is None

    @property
    def asks_slaves_first(self) -> bool:
        """Return whether this master asks its slaves what they did in its place before it registers."""
        acts_in_turn = self.enable_slave_acting_master and not self.skip_pre_online
        return acts_in_turn and not self.is_slave and self.has_name_servers

    @property
    def counts_registered_slaves(self) -> bool:
        """True if only registered slaves' copies count: without authentication only name servers tell slaves from strangers."""
        copies_matter = self.waits_for_slaves or self.order_coordinator is not None
        return copies_matter and self.limits_strangers

    @property
    def limits_strangers(self) -> bool:
        """True if links of hosts without a registered slave share a limit: only name servers tell slaves from strangers."""
        return self.ha_count_registered_slaves_only and self.has_name_servers and not self.tells_slaves_apart

    @property
    def allowed_slaves(self) -> frozenset[str]:
        """Return the hosts in haAllowedSlaves, without blanks and empty ones."""
        return frozenset(one.strip() for one in (self.ha_allowed_slaves or "").split(",") if one.strip())

    @property
    def needs_rights(self) -> bool:
        """True if clients authenticate, or need rights."""
        return self.asks or self.authorization_enabled

    @property
    def tells_slaves_apart(self) -> bool:
        """True if slaves authenticate, or the settings name their hosts."""
        return bool(self.ha_shared_secret or self.ha_allowed_slaves)

    @property
    def closes_ha_port(self) -> bool:
        """True if no slave is served: the log needs access rights, and slaves cannot be told from strangers."""
        return self.needs_rights and not self.tells_slaves_apart and not self.ha_open_under_access_control

    @property
    def commit_log_path(self) -> str:
        """Return storePathCommitLog, or its default below storePathRootDir."""
        return self.store_path_commit_log or os.path.join(self.store_path_root_dir, "commitlog")

    @property
    def has_name_servers(self) -> bool:
        """True if name servers are configured, or looked up."""
        return bool(self.name_servers) or self.fetch_namesrv_addr_by_address_server

    @property
    def name_servers(self) -> list[str]:
        """Return the addresses in namesrvAddr, without blanks and empty ones."""
        return [one.strip() for one in (self.namesrv_addr or "").split(";") if one.strip()]
