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

LISTEN_PORT = 10911
"""The port that Apache's start-up code sets before it reads the file; BrokerConfig's own default is 6888."""


class BrokerRole(enum.StrEnum):
    """The role of a broker in its group (Apache: BrokerRole)."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


class FlushDiskType(enum.StrEnum):
    """When a send is answered: before or after the flush (Apache: FlushDiskType)."""

    SYNC_FLUSH = "SYNC_FLUSH"
    ASYNC_FLUSH = "ASYNC_FLUSH"


class MessageRequestMode(enum.StrEnum):
    """The ways in which a group consumes (Apache: MessageRequestMode)."""

    PULL = "PULL"
    POP = "POP"


@attrs.define(kw_only=True)
class BrokerOptions(MetricsOptions):
    """Settings of one broker. Mutable: the owner applies the changes that remote updates may make."""

    # identity

    broker_name: str = option(
        "brokerName", attrs.Factory(local_host_name), "name shared by a master and its slaves", type="string"
    )
    broker_cluster_name: str = option("brokerClusterName", "DefaultCluster", "cluster that the broker belongs to")
    broker_id: int = option(
        "brokerId", 0, "0 for a master, above 0 for a slave, -1 where a controller gives it", type="long", low=-1
    )
    broker_role: BrokerRole = option(  # noqa: RUF009 an attrs field, not a shared default
        "brokerRole", BrokerRole.ASYNC_MASTER, "master or slave, and how sends wait for slaves", type=BrokerRole
    )
    region_id: str = option("regionId", "DefaultRegion", "region named in send answers (MSG_REGION)")
    broker_config_path: str | None = option(
        "brokerConfigPath",
        None,
        "file that remote updates are written to; the file given at start takes its place",
        type="string",
    )

    # where it listens and what it announces

    bind_address: str = option("bindAddress", "0.0.0.0", "address that the sockets are bound to")
    listen_port: int = option("listenPort", LISTEN_PORT, "port for clients; the fast port is two below", limits=PORT)
    ha_listen_port: int = option("haListenPort", 0, "port for slaves; 0: listenPort + 1", limits=PORT)
    broker_ip1: str | None = option(
        "brokerIP1", None, "address told to clients; unset: the interface that reaches the name server", type="string"
    )
    broker_ip2: str | None = option("brokerIP2", None, "address told to slaves; unset: brokerIP1", type="string")
    server_channel_max_idle_time_seconds: int = option(
        "serverChannelMaxIdleTimeSeconds", 120, "silence in s after which a connection is closed", low=1
    )

    grpc_server_port: int = option(
        "grpcServerPort", -1, "port for gRPC clients of 5.x; 0 a free one, -1 none; ours", low=-1, high=65535
    )
    proxy_config_path: str | None = option(
        "proxyConfigPath", None, "rmq-proxy.json with settings of the gRPC port; ours", type="string"
    )

    # name servers

    namesrv_addr: str | None = option(
        "namesrvAddr",
        attrs.Factory(name_servers_of_environment),
        "name servers, host:port parted by semicolons",
        type="string",
    )
    fetch_namesrv_addr_by_address_server: bool = option(
        "fetchNamesrvAddrByAddressServer", False, "without namesrvAddr the name servers are those of an HTTP page"
    )
    fetch_namesrv_addr_interval: int = option(
        "fetchNamesrvAddrInterval", 10000, "ms between looks at that page", type="long", low=1
    )
    namesrv_domain: str = option(
        "rocketmq.namesrv.domain",
        "jmenv.tbsite.net",
        "host or host:port of the page; a system property of Apache's broker",
    )
    namesrv_domain_subgroup: str = option(
        "rocketmq.namesrv.domain.subgroup",
        "nsaddr",
        "the page's name below /rocketmq/; a system property of Apache's broker",
    )
    fetch_name_srv_addr_by_dns_lookup: bool = option(
        "fetchNameSrvAddrByDnsLookup", False, "all addresses of each name in namesrvAddr are name servers"
    )
    update_name_server_addr_period: int = option(
        "updateNameServerAddrPeriod", 120000, "ms between looks at those names", low=1
    )
    register_name_server_period: int = option(
        "registerNameServerPeriod", 30000, "ms between registrations, taken between 10000 and 60000", low=1
    )
    register_broker_timeout_mills: int = option(
        "registerBrokerTimeoutMills", 24000, "ms to wait for a name server's answer", low=1, remote=True
    )
    send_heartbeat_timeout_millis: int = option(
        "sendHeartbeatTimeoutMillis", 1000, "ms to wait for the answer to a broker heartbeat", low=1
    )
    broker_heartbeat_interval: int = option(
        "brokerHeartbeatInterval",
        1000,
        "ms between heartbeats to the name servers in acting-master mode",
        low=100,
    )
    broker_not_active_timeout_millis: int = option(
        "brokerNotActiveTimeoutMillis",
        10000,
        "ms of silence after which the name servers take such a broker out of their routes",
        type="long",
        low=1,
    )
    compressed_register: bool = option("compressedRegister", False, "registrations leave compressed", remote=True)
    force_register: bool = option(
        "forceRegister", True, "register each period even where nothing changed", has_effect=False
    )
    enable_single_topic_register: bool = option(
        "enableSingleTopicRegister", False, "a changed topic is registered alone", has_effect=False
    )
    enable_split_registration: bool = option(
        "enableSplitRegistration", False, "a registration of many topics leaves in parts", has_effect=False
    )
    split_registration_size: int = option("splitRegistrationSize", 800, "topics in one part", low=1, has_effect=False)
    enable_slave_acting_master: bool = option(
        "enableSlaveActingMaster",
        False,
        "the slave with the lowest id acts for a lost master; set it at the whole group",
    )
    enable_remote_escape: bool = option(
        "enableRemoteEscape",
        False,
        "an acting slave sends delayed and timed messages that are due, and half messages, to other masters",
    )
    skip_pre_online: bool = option(
        "skipPreOnline",
        False,
        "a master of this mode registers at once, without asking its slaves what they did while it was away",
    )
    compatible_with_old_name_srv: bool = option(
        "compatibleWithOldNameSrv",
        True,
        "heartbeats are queries of the data version, which name servers of 4.x know too",
    )

    forward_timeout: int = option(
        "forwardTimeout", 3000, "ms to wait for another broker that holds part of a static topic", type="long", low=1
    )

    # topics, groups, permissions

    broker_permission: int = option(
        "brokerPermission", 6, "what clients may do: 4 read, 2 write, 6 both", low=0, high=7, remote=True
    )
    default_topic_queue_nums: int = option(
        "defaultTopicQueueNums", 8, "queues of the default topic, the most that a created topic gets", low=1
    )
    auto_create_topic_enable: bool = option(
        "autoCreateTopicEnable", True, "a send makes a missing topic after the default topic", remote=True
    )
    auto_create_subscription_group: bool = option(
        "autoCreateSubscriptionGroup", True, "a consumer makes its missing group", remote=True
    )
    cluster_topic_enable: bool = option("clusterTopicEnable", True, "there is a topic named as the cluster")
    broker_topic_enable: bool = option("brokerTopicEnable", True, "there is a topic named as the broker")
    trace_topic_enable: bool = option("traceTopicEnable", False, "there is a topic for message traces")
    msg_trace_topic_name: str = option("msgTraceTopicName", "RMQ_SYS_TRACE_TOPIC", "name of the topic for traces")
    trace_on: bool = option("traceOn", True, "send answers say that traces are taken (TRACE_ON)")
    revive_queue_num: int = option("reviveQueueNum", 8, "queues of the topic for pop revivals", low=1)
    validate_system_topic_when_update_topic: bool = option(
        "validateSystemTopicWhenUpdateTopic", True, "system topics cannot be updated by an admin", remote=True
    )
    enable_mixed_message_type: bool = option(
        "enableMixedMessageType", False, "topics with the attribute message.type=MIXED may be made", remote=True
    )

    # sends

    max_message_size: int = option("maxMessageSize", 4194304, "bytes of a message body at most", low=1, remote=True)
    max_topic_length: int = option("maxTopicLength", 127, "characters of a topic name at most", low=1, has_effect=False)
    auto_message_version_on_topic_len: bool = option(
        "autoMessageVersionOnTopicLen", True, "longer topic names are stored as message version 2", has_effect=False
    )
    transaction_members_only: bool = option(
        "transactionMembersOnly",
        True,
        "a transaction is ended from the host that sent its half message, or by a connection that is registered as a"
        " producer of its group; ours",
    )
    producer_group_rights_enable: bool = option(
        "producerGroupRightsEnable",
        True,
        "under access control only those who may publish as a producer group (Pub on Group:NAME) are asked about"
        " transactions that another connection began, and end them; ours",
    )
    record_rights_enable: bool = option(
        "recordRightsEnable",
        True,
        "under access control a request that names a message by its place in the log needs the right on the message's own"
        " topic; ours",
    )
    reject_transaction_message: bool = option(
        "rejectTransactionMessage", False, "transactional sends are refused", remote=True
    )
    store_reply_message_enable: bool = option(
        "storeReplyMessageEnable", True, "replies are stored beside being handed on", remote=True
    )
    reply_to_any_topic_enable: bool = option(
        "replyToAnyTopicEnable",
        False,
        "replies to requests may name other topics than the cluster's own of replies, and make them; ours",
    )
    transaction_time_out: int = option(
        "transactionTimeOut",
        6000,
        "ms after which a producer is asked about its transaction",
        type="long",
        low=0,
        remote=True,
    )
    transaction_check_interval: int = option(
        "transactionCheckInterval", 30000, "ms between looks for undecided transactions", type="long", low=1
    )
    transaction_check_max: int = option(
        "transactionCheckMax", 15, "times that a producer is asked before a transaction is given up", low=1, remote=True
    )
    transaction_op_msg_max_size: int = option(
        "transactionOpMsgMaxSize", 4096, "bytes of decided transactions that are written at once", low=1, remote=True
    )
    transaction_op_batch_interval: int = option(
        "transactionOpBatchInterval",
        3000,
        "ms that decided transactions wait to be written together",
        low=0,
        remote=True,
    )
    transaction_metric_flush_interval: int = option(
        "transactionMetricFlushInterval", 3000, "ms between writes of the counts of transactions", type="long", low=1
    )
    start_accept_send_request_time_stamp: int = option(
        "startAcceptSendRequestTimeStamp", 0, "ms since 1970 before which sends are refused", type="long"
    )
    send_thread_pool_queue_capacity: int = option(
        "sendThreadPoolQueueCapacity", 10000, "sends that may wait for their answer; past it SYSTEM_BUSY", low=1
    )
    broker_fast_failure_enable: bool = option(
        "brokerFastFailureEnable", True, "requests that waited too long for their turn are refused", remote=True
    )
    wait_time_mills_in_send_queue: int = option(
        "waitTimeMillsInSendQueue", 200, "ms that a send may wait for its turn", type="long", low=0, remote=True
    )
    wait_time_mills_in_pull_queue: int = option(
        "waitTimeMillsInPullQueue",
        5000,
        "ms that a pull, pop or peek may wait for its turn",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_lite_pull_queue: int = option(
        "waitTimeMillsInLitePullQueue",
        5000,
        "ms that a lite pull may wait for its turn",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_heartbeat_queue: int = option(
        "waitTimeMillsInHeartbeatQueue",
        31000,
        "ms that a heartbeat may wait for its turn",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_transaction_queue: int = option(
        "waitTimeMillsInTransactionQueue",
        3000,
        "ms that the end of a transaction may wait for its turn",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_ack_queue: int = option(
        "waitTimeMillsInAckQueue",
        3000,
        "ms that an acknowledgement of a pop may wait for its turn",
        type="long",
        low=0,
        remote=True,
    )
    wait_time_mills_in_admin_broker_queue: int = option(
        "waitTimeMillsInAdminBrokerQueue",
        5000,
        "ms that any other request may wait for its turn",
        type="long",
        low=0,
        remote=True,
    )
    os_page_cache_busy_time_out_mills: int = option(
        "osPageCacheBusyTimeOutMills",
        1000,
        "ms of one append after which the store counts as busy",
        type="long",
        low=1,
        has_effect=False,
    )

    # pulls

    long_polling_enable: bool = option(
        "longPollingEnable", True, "a pull without messages waits as long as its client asks", remote=True
    )
    short_polling_time_mills: int = option(
        "shortPollingTimeMills", 1000, "ms that it waits without long polling", type="long", low=1, remote=True
    )
    lite_pull_message_enable: bool = option("litePullMessageEnable", True, "lite pulls are served", remote=True)
    reject_pull_consumer_enable: bool = option(
        "rejectPullConsumerEnable",
        False,
        "consumers that pull by themselves are not registered, and their pulls are refused",
        remote=True,
    )
    slave_read_enable: bool = option("slaveReadEnable", False, "slaves serve pulls", remote=True)
    pull_thread_pool_queue_capacity: int = option(
        "pullThreadPoolQueueCapacity",
        100000,
        "pulls that may wait for messages, lite ones included; past it SYSTEM_BUSY",
        low=1,
        remote=True,
    )
    lite_pull_thread_pool_queue_capacity: int = option(
        "litePullThreadPoolQueueCapacity",
        100000,
        "lite pulls that may wait for messages; past it SYSTEM_BUSY",
        low=1,
        has_effect=False,
    )
    max_transfer_bytes_on_message_in_memory: int = option(
        "maxTransferBytesOnMessageInMemory", 262144, "bytes of one pull answer from recent messages", low=1, remote=True
    )
    max_transfer_count_on_message_in_memory: int = option(
        "maxTransferCountOnMessageInMemory", 32, "recent messages in one pull answer", low=1, remote=True
    )
    max_transfer_bytes_on_message_in_disk: int = option(
        "maxTransferBytesOnMessageInDisk", 65536, "bytes of one pull answer from old messages", low=1, remote=True
    )
    max_transfer_count_on_message_in_disk: int = option(
        "maxTransferCountOnMessageInDisk", 8, "old messages in one pull answer", low=1, remote=True
    )
    max_filter_message_size: int = option(
        "maxFilterMessageSize",
        16000,
        "bytes of a queue's entries that one pull looks through, at most 4096 entries of 20",
        low=1,
        remote=True,
    )
    access_message_in_memory_max_ratio: int = option(
        "accessMessageInMemoryMaxRatio", 40, "percent of memory whose messages count as recent", low=0, high=100
    )
    data_read_ahead_enable: bool = option(
        "dataReadAheadEnable", True, "the kernel reads the log ahead of what is looked at", remote=True
    )
    use_server_side_reset_offset: bool = option(
        "useServerSideResetOffset",
        True,
        "a reset offset is handed out by the broker, not by the consumers",
        remote=True,
    )
    enable_property_filter: bool = option("enablePropertyFilter", False, "SQL92 expressions are served", remote=True)
    filter_support_retry: bool = option(
        "filterSupportRetry", False, "retried messages are filtered by their first topic's expression", remote=True
    )
    expect_consumer_num_use_filter: int = option(
        "expectConsumerNumUseFilter",
        32,
        "groups that filter one topic, for the size of the bit maps",
        low=1,
        high=10000,
    )
    max_error_rate_of_bloom_filter: int = option(
        "maxErrorRateOfBloomFilter", 20, "percent of wrong hits that the bit maps may have", low=1, high=99
    )
    filter_data_clean_time_span: int = option(
        "filterDataCleanTimeSpan", 86400000, "ms that an absent group's filter is kept", type="long", low=0
    )
    enable_calc_filter_bit_map: bool = option(
        "enableCalcFilterBitMap", False, "bit maps of matching groups are stored with the queues"
    )

    # consumers

    notify_consumer_ids_changed_enable: bool = option(
        "notifyConsumerIdsChangedEnable", True, "members are told when their group changes", remote=True
    )
    flush_consumer_offset_interval: int = option(
        "flushConsumerOffsetInterval", 5000, "ms between writes of the consumer offsets to disk", low=1
    )
    channel_expired_timeout: int = option(
        "channelExpiredTimeout",
        120000,
        "ms without a heartbeat after which a client is gone",
        type="long",
        low=1,
    )
    rebalance_lock_max_live_time: int = option(
        "rebalanceLockMaxLiveTime",
        60000,
        "ms without renewal after which a queue that is read in order is free for another client; ours, with Apache a"
        " system property",
        type="long",
        low=1,
    )
    subscription_expired_timeout: int = option(
        "subscriptionExpiredTimeout",
        600000,
        "ms after which an unused subscription is gone",
        type="long",
        low=1,
        has_effect=False,
    )
    enable_register_producer: bool = option(
        "enableRegisterProducer", True, "producers are kept by their heartbeats", has_effect=False
    )
    server_load_balancer_enable: bool = option(
        "serverLoadBalancerEnable", True, "queues are divided in a group for consumers that ask; off: each gets all"
    )
    default_message_request_mode: MessageRequestMode = option(  # noqa: RUF009 an attrs field, not a shared default
        "defaultMessageRequestMode",
        MessageRequestMode.PULL,
        "how consumers that ask for their queues take messages where nothing was set for their group",
        type=MessageRequestMode,
    )
    default_pop_share_queue_num: int = option(
        "defaultPopShareQueueNum", -1, "further members that pop from a queue by default; below 1: all of the group"
    )
    load_balance_poll_name_server_interval: int = option(
        "loadBalancePollNameServerInterval",
        30000,
        "ms between looks for changed routes of the topics that are divided",
        type="long",
        low=1,
    )

    # pop consumption

    revive_interval: int = option(
        "reviveInterval", 1000, "ms between looks into a queue of the revive log", type="long", low=1
    )
    revive_max_slow: int = option(
        "reviveMaxSlow", 3, "so many intervals longer a queue rests at most while nothing is popped", type="long", low=0
    )
    revive_scan_time: int = option(
        "reviveScanTime",
        10000,
        "ms of reading at most in one look; here so many messages",
        type="long",
        has_effect=False,
    )
    revive_ack_wait_ms: int = option(
        "reviveAckWaitMs", 180000, "ms after which an acknowledgement without a pop is passed over", type="long", low=1
    )
    enable_skip_long_awaiting_ack: bool = option(
        "enableSkipLongAwaitingAck", False, "such acknowledgements move the revive group's offset on"
    )
    skip_when_ck_re_put_reach_max_times: bool = option(
        "skipWhenCKRePutReachMaxTimes", False, "a message that could not be revived 17 times is given up"
    )
    pop_polling_size: int = option("popPollingSize", 1024, "pops that wait for one queue of a group at most", low=0)
    pop_polling_map_size: int = option(
        "popPollingMapSize",
        100000,
        "queues of groups that pops wait for at most; bounded by maxPopPollingSize",
        has_effect=False,
    )
    max_pop_polling_size: int = option("maxPopPollingSize", 100000, "pops that wait at most", type="long", low=0)
    pop_long_polling_force_notify_interval: int = option(
        "popLongPollingForceNotifyInterval",
        800,
        "each so many messages wake a pop that filters, whatever they are; here only those that it may want",
        type="long",
        has_effect=False,
    )
    enable_pop_log: bool = option("enablePopLog", False, "each step of a pop is logged", has_effect=False)
    enable_pop_buffer_merge: bool = option(
        "enablePopBufferMerge",
        False,
        "check points wait in memory for acknowledgements; here they never do",
        has_effect=False,
    )
    enable_pop_batch_ack: bool = option(
        "enablePopBatchAck", False, "the buffer's acknowledgements are stored together", has_effect=False
    )
    append_ack_async: bool = option(
        "appendAckAsync", False, "acknowledgements are answered before they are stored", has_effect=False
    )
    append_ck_async: bool = option("appendCkAsync", False, "pops are answered before they are noted", has_effect=False)
    enable_notify_after_pop_order_lock_release: bool = option(
        "enableNotifyAfterPopOrderLockRelease", True, "an ordered group is told when it may pop a queue again"
    )
    init_pop_offset_by_check_msg_in_mem: bool = option(
        "initPopOffsetByCheckMsgInMem",
        True,
        "a group new to a queue that is in memory whole begins at its first message",
    )
    retrieve_message_from_pop_retry_topic_v1: bool = option(
        "retrieveMessageFromPopRetryTopicV1",
        True,
        "with enableRetryTopicV2 the retry topics of version 1 are emptied too",
    )
    enable_retry_topic_v2: bool = option(
        "enableRetryTopicV2", False, "retry topics of pops are named %RETRY%group+topic instead of %RETRY%group_topic"
    )
    clear_retry_topic_when_delete_topic: bool = option(
        "clearRetryTopicWhenDeleteTopic", True, "a topic takes the retry topics of its pops with it"
    )
    pop_from_retry_probability: int = option(
        "popFromRetryProbability", 20, "of 100 pops so many look into the retry topic first", low=0, high=100
    )
    pop_response_return_actual_retry_topic: bool = option(
        "popResponseReturnActualRetryTopic", False, "retried messages are handed out under their retry topic's name"
    )
    enable_pop_message_threshold: bool = option(
        "enablePopMessageThreshold", False, "a group that holds too many messages of a queue gets no more"
    )
    pop_inflight_message_threshold: int = option(
        "popInflightMessageThreshold", 10000, "too many messages of a queue", type="long", low=0
    )

    cold_data_flow_control_enable: bool = option(
        "coldDataFlowControlEnable", False, "groups that read too much that has left the memory wait", remote=True
    )
    cg_cold_read_threshold: int = option(
        "cgColdReadThreshold", 3145728, "bytes of such reads in 5 s for one group", type="long", low=0, remote=True
    )
    global_cold_read_threshold: int = option(
        "globalColdReadThreshold",
        104857600,
        "bytes of such reads in 5 s for all groups together",
        type="long",
        low=0,
        remote=True,
    )

    # store

    store_path_root_dir: str = option(
        "storePathRootDir", attrs.Factory(in_home("store")), "directory of the store", type="string"
    )
    store_path_commit_log: str | None = option(
        "storePathCommitLog", None, "directory of the commit log; unset: commitlog in the store's", type="string"
    )
    mapped_file_size_commit_log: int = option(
        "mappedFileSizeCommitLog", 1073741824, "bytes of one commit log file", low=1024
    )
    mapped_file_size_consume_queue: int = option(
        "mappedFileSizeConsumeQueue",
        6000000,
        "bytes of one queue file, rounded up to entries of 20",
        limits=Limits(low=20, step=20),
    )
    mapper_file_size_batch_consume_queue: int = option(
        "mapperFileSizeBatchConsumeQueue",
        13800000,
        "bytes of one file of a batch queue, rounded up to entries of 46",
        limits=Limits(low=46, step=46),
    )
    message_index_enable: bool = option("messageIndexEnable", True, "messages are indexed by their keys")
    message_index_safe: bool = option(
        "messageIndexSafe", False, "a start after a crash makes the index whole; here it always does", has_effect=False
    )
    max_hash_slot_num: int = option("maxHashSlotNum", 5000000, "slots of one index file", low=1)
    max_index_num: int = option("maxIndexNum", 20000000, "entries of one index file, one more than it holds", low=2)
    default_query_max_num: int = option("defaultQueryMaxNum", 32, "most records found by a unique key", low=1)
    max_msgs_num_batch: int = option("maxMsgsNumBatch", 64, "most records found by a key", low=1)
    check_crc_on_recover: bool = option("checkCRCOnRecover", True, "recovery checks the bodies' checksums")
    message_delay_level: str = option(
        "messageDelayLevel",
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
        "delays of the levels 1 and up",
    )

    # messages that wait

    flush_delay_offset_interval: int = option(
        "flushDelayOffsetInterval", 10000, "ms between writes of the delay levels' offsets", type="long", low=1
    )
    delay_offset_update_version_step: int = option(
        "delayOffsetUpdateVersionStep", 200, "deliveries of delayed messages per data version", type="long", low=1
    )
    timer_wheel_enable: bool = option("timerWheelEnable", True, "messages for any time are served")
    timer_precision_ms: int = option(
        "timerPrecisionMs",
        1000,
        "ms of one tick of the timer",
        limits=Limits(low=100, high=1000, choices=(100, 200, 500, 1000)),
    )
    timer_max_delay_sec: int = option(
        "timerMaxDelaySec", 259200, "s from now that a message may be timed for at most", low=1, remote=True
    )
    timer_roll_window_slot: int = option(
        "timerRollWindowSlot", 172800, "ticks after which a message that waits longer is put anew", low=1
    )
    timer_flush_interval_ms: int = option("timerFlushIntervalMs", 1000, "ms between flushes of the timer", low=1)
    mapped_file_size_timer_log: int = option(
        "mappedFileSizeTimerLog", 104857600, "bytes of one file of the timer's log", low=1024
    )
    timer_stop_enqueue: bool = option("timerStopEnqueue", False, "the timer takes no messages", remote=True)
    timer_stop_dequeue: bool = option("timerStopDequeue", False, "the timer delivers no messages", remote=True)
    recall_message_enable: bool = option(
        "recallMessageEnable", False, "producers may recall messages that wait for their time", remote=True
    )
    allow_recall_when_broker_not_writeable: bool = option(
        "allowRecallWhenBrokerNotWriteable", True, "recalls are served even where sends are not", remote=True
    )
    timer_congest_num_each_slot: int = option(
        "timerCongestNumEachSlot", 2147483647, "messages timed for one tick past which more are refused", low=1
    )

    # extensions of the queues

    enable_consume_queue_ext: bool = option(
        "enableConsumeQueueExt", False, "queues keep store time and filter bit map of each message"
    )
    mapped_file_size_consume_queue_ext: int = option(
        "mappedFileSizeConsumeQueueExt", 50331648, "bytes of one file of these", low=64
    )

    # flushing

    flush_disk_type: FlushDiskType = option(  # noqa: RUF009 an attrs field, not a shared default
        "flushDiskType", FlushDiskType.ASYNC_FLUSH, "a send is answered after or before its flush", type=FlushDiskType
    )
    sync_flush_timeout: int = option("syncFlushTimeout", 5000, "ms that a send waits for its flush", low=1)
    flush_interval_commit_log: int = option(
        "flushIntervalCommitLog", 500, "ms between flushes of the commit log", low=1
    )
    flush_commit_log_least_pages: int = option(
        "flushCommitLogLeastPages", 4, "pages of 4 KiB that make a flush worthwhile", low=0
    )
    flush_commit_log_thorough_interval: int = option(
        "flushCommitLogThoroughInterval", 10000, "ms after which fewer pages are flushed too", low=1
    )
    flush_interval_consume_queue: int = option(
        "flushIntervalConsumeQueue", 1000, "ms between flushes of the queues", low=1
    )
    flush_consume_queue_least_pages: int = option(
        "flushConsumeQueueLeastPages", 2, "pages of 4 KiB that make a queue's flush worthwhile", low=0
    )
    flush_consume_queue_thorough_interval: int = option(
        "flushConsumeQueueThoroughInterval", 60000, "ms after which fewer pages are flushed too", low=1
    )

    flush_commit_log_timed: bool = option(
        "flushCommitLogTimed", True, "the commit log is flushed at its interval only, not when enough pages are written"
    )

    # writing past the page cache's mapping

    transient_store_pool_enable: bool = option(
        "transientStorePoolEnable", False, "records go to memory of the broker first, then to the file; not on slaves"
    )
    transient_store_pool_size: int = option("transientStorePoolSize", 5, "buffers of one commit log file's size", low=1)
    fast_fail_if_no_buffer_in_store_pool: bool = option(
        "fastFailIfNoBufferInStorePool", False, "SYSTEM_BUSY where all buffers are in use, instead of the mapping"
    )
    commit_interval_commit_log: int = option(
        "commitIntervalCommitLog", 200, "ms between commits of a buffer to its file", low=1
    )
    commit_commit_log_least_pages: int = option(
        "commitCommitLogLeastPages", 4, "pages of 4 KiB that make a commit worthwhile", low=0
    )
    commit_commit_log_thorough_interval: int = option(
        "commitCommitLogThoroughInterval", 200, "ms after which fewer pages are committed too", low=1
    )

    # files made ahead

    warm_maped_file_enable: bool = option(
        "warmMapedFileEnable", False, "a new commit log file takes all its disk space and memory before its use"
    )
    flush_least_pages_when_warm_maped_file: int = option(
        "flushLeastPagesWhenWarmMapedFile", 4096, "pages of 4 KiB between flushes then, with SYNC_FLUSH", low=1
    )

    # retention

    delete_when: str = option(
        "deleteWhen", "04", "hours of the day in which old files go, separated by semicolons", parse=hours, remote=True
    )
    file_reserved_time: int = option("fileReservedTime", 72, "hours that commit log files are kept", low=1, remote=True)
    clean_resource_interval: int = option("cleanResourceInterval", 10000, "ms between looks for old files", low=1)
    delete_commit_log_files_interval: int = option(
        "deleteCommitLogFilesInterval", 100, "ms between the removals of two commit log files", low=0, remote=True
    )
    delete_consume_queue_files_interval: int = option(
        "deleteConsumeQueueFilesInterval", 100, "ms between the removals of two queues' files", low=0, remote=True
    )
    redelete_hanged_file_interval: int = option(
        "redeleteHangedFileInterval", 120000, "ms after which a file that could not be removed is tried again", low=0
    )
    delete_file_batch_max: int = option(
        "deleteFileBatchMax", 10, "commit log files that go in one turn at most", low=1, remote=True
    )
    disk_max_used_space_ratio: int = option(
        "diskMaxUsedSpaceRatio",
        75,
        "percent of the disk past which expired files go at any hour",
        low=10,
        high=95,
        remote=True,
    )
    clean_file_forcibly_enable: bool = option(
        "cleanFileForciblyEnable",
        True,
        "files that have not expired may go where the disk is short of space",
        remote=True,
    )
    disk_space_clean_forcibly_ratio: int = option(
        "diskSpaceCleanForciblyRatio", 85, "percent past which they do; taken within 30 and 85", remote=True
    )
    disk_space_warning_level_ratio: int = option(
        "diskSpaceWarningLevelRatio",
        90,
        "percent past which no messages are taken; taken within 35 and 90",
        remote=True,
    )

    # replication

    ha_master_address: str | None = option(
        "haMasterAddress",
        None,
        "master's host:port for slaves; unset: told by the name server",
        type="string",
    )
    ha_send_heartbeat_interval: int = option("haSendHeartbeatInterval", 5000, "ms between heartbeats to slaves", low=1)
    ha_housekeeping_interval: int = option("haHousekeepingInterval", 20000, "ms of silence that end a link", low=1)
    ha_transfer_batch_size: int = option("haTransferBatchSize", 32768, "bytes of one transfer to a slave", low=1)
    ha_max_gap_not_in_sync: int = option(
        "haMaxGapNotInSync", 268435456, "bytes that a slave may lag and still count as in sync", low=0
    )
    ha_flow_control_enable: bool = option(
        "haFlowControlEnable", False, "links to slaves carry maxHaTransferByteInSecond at most"
    )
    max_ha_transfer_byte_in_second: int = option(
        "maxHaTransferByteInSecond", 104857600, "bytes a second of one link under flow control", type="long", low=1024
    )
    ha_allowed_slaves: str | None = option(
        "haAllowedSlaves", None, "hosts that may replicate, parted by commas; unset: any; ours", type="string"
    )
    ha_shared_secret: str | None = option(
        "haSharedSecret",
        None,
        "what masters and slaves must both know; unset: nothing; ours",
        type="string",
        secret=True,
    )
    ha_open_under_access_control: bool = option(
        "haOpenUnderAccessControl",
        False,
        "under access control slaves are served without haSharedSecret and haAllowedSlaves too: whoever reaches the port"
        " can read the log; ours",
    )
    ha_count_registered_slaves_only: bool = option(
        "haCountRegisteredSlavesOnly",
        True,
        "without haSharedSecret and haAllowedSlaves, a SYNC_MASTER counts the copies of hosts alone that the name"
        " servers know as its slaves'; ours",
    )
    registration_shared_secret: str | None = option(
        "registrationSharedSecret",
        None,
        "what name servers ask of brokers that register; unset: nothing; ours",
        type="string",
        secret=True,
    )
    sync_broker_member_group_period: int = option(
        "syncBrokerMemberGroupPeriod",
        1000,
        "ms between looks at the name servers: a slave's for its master, a SYNC_MASTER's for its slaves",
        low=100,
    )
    slave_timeout: int = option("slaveTimeout", 3000, "ms that a send waits for slaves", low=1)
    total_replicas: int = option(
        "totalReplicas", 1, "copies of each message, the master's included", low=1, has_effect=False
    )
    in_sync_replicas: int = option("inSyncReplicas", 1, "copies that a send waits for", low=1)
    min_in_sync_replicas: int = option(
        "minInSyncReplicas", 1, "copies below which sends are refused", low=1, has_effect=False
    )

    # strictly ordered topics

    order_coordinator: str | None = option(
        "orderCoordinator",
        None,
        "ZooKeeper that keeps the lists of ordered topics, HOST:PORT[,..][/chroot]; memory: that of this process; ours",
        type="string",
    )
    order_session_timeout_millis: int = option(
        "orderSessionTimeoutMillis",
        6000,
        "ms without a word after which the coordinator takes this broker for gone; ours",
        low=500,
    )
    order_coordinator_auth: str | None = option(
        "orderCoordinatorAuth",
        None,
        "user:password for the coordinator; what the broker makes there is this user's alone; ours",
        type="string",
        secret=True,
    )
    order_coordinator_ca_file: str | None = option(
        "orderCoordinatorCaFile",
        None,
        "certificates (PEM) by which the coordinator is known; turns TLS on; ours",
        type="string",
    )
    order_coordinator_cert_file: str | None = option(
        "orderCoordinatorCertFile", None, "this broker's certificate (PEM) for the coordinator; ours", type="string"
    )
    order_coordinator_key_file: str | None = option(
        "orderCoordinatorKeyFile", None, "key (PEM) of that certificate; ours", type="string"
    )

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
    def asks_slaves_first(self) -> bool:
        """Return whether this master asks its slaves what they did in its place before it registers."""
        acts_in_turn = self.enable_slave_acting_master and not self.skip_pre_online
        return acts_in_turn and not self.is_slave and self.has_name_servers

    @property
    def counts_registered_slaves(self) -> bool:
        """True if only registered slaves' copies count: without authentication only name servers tell slaves from strangers."""
        asks = self.ha_count_registered_slaves_only and self.has_name_servers
        copies_matter = self.waits_for_slaves or self.order_coordinator is not None
        return copies_matter and asks and not self.tells_slaves_apart

    @property
    def tells_slaves_apart(self) -> bool:
        """True if slaves authenticate, or the settings name their hosts."""
        return bool(self.ha_shared_secret or self.ha_allowed_slaves)

    @property
    def closes_ha_port(self) -> bool:
        """True if no slave is served: the log needs access rights, and slaves cannot be told from strangers."""
        asks = self.asks or self.authorization_enabled
        return asks and not self.tells_slaves_apart and not self.ha_open_under_access_control

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
