"""Says why keys of Apache's broker have no effect here: one reason for each, for files, tables and warnings."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.config.known_keys import known_keys

_THREADS = "one thread answers all requests: there are no thread pools and no queues for them"
_TURNS = (
    "requests are bounded by memory (maxHeldBytes) and by time (waitTimeMillsInSendQueue and the like), not by number"
)
_OWN = "of a server's own requests to one connection at most 1,000 wait for their answer"
_NETTY = "for Netty only: all connections share one event loop here"
_BUFFERS = "socket buffers are left to the system; maxUnsentBytes limits unsent data"
_CALLS = "for the client inside the broker, which has one connection to each peer and a timeout for each call"
_ROCKSDB = "for stores and tables in RocksDB; here they are files"
_DLEDGER = "for DLedger, which is not supported; use ordered topics (orderCoordinator), or a master and slaves"
_CONTROLLER = (
    "for the controller mode, which is not supported; ordered topics (orderCoordinator) fail over by themselves"
)
_ACTING = (
    "for acting masters: a slave compares its log with its master's, and accepts no place in the log from a request"
)
_SWAP = "files stay mapped, and the kernel frees their pages"
_LOCKS = "one thread appends: there is no choice of lock"
_DISPATCH = "queue entries are written by the thread that appends, at the end of each turn"
_POP_BUFFER = "check points of pops are written at once and never wait in memory"
_POP_KV = "pops are stored in the revive log and the offsets, not in a key-value store"
_COMPACTION = "for compacted topics (cleanup.policy=COMPACTION), which are not supported"
_LMQ = "for light queues (LMQ, MultiDispatch), which are not supported"
_BILLING = "for usage records of a cloud provider"
_STATISTICS = "statistics are counted once per request, and cost too little to need a switch"
_COLD = "cold reads are limited by group (coldDataFlowControlEnable); pages are not scanned"
_CONTAINER = "for several brokers in one process; start one process for each"
_TIMER_THREADS = "one timer reads and delivers in slices of the reactor's turns"
_SCHEDULE = "delay levels are delivered in slices of the reactor's turns, each in its order"
_CACHE = "all accounts are in memory, and changes take effect at once"
_REGISTRATION = "all topics are registered in one request, and changed ones at once"
_TRANSFER = "answers leave in one write, from the mapped file"
_RECOVERY = "recovery starts at the last file that checkpoint and queues confirm"
_UNREAD = "version 5.3.3 does not read it"
_OTEL = "the page is generated for each scrape, from counters with a fixed number of rows"
_COPIES = "for the replica lists of the controller mode; with SYNC_MASTER inSyncReplicas is used"

_BY_REASON: Mapping[str, tuple[str, ...]] = {
    _THREADS: (
        "ackMessageThreadPoolNums", "adminBrokerThreadPoolNums", "clientManageThreadPoolNums", "consumerManageThreadPoolNums",
        "endTransactionThreadPoolNums", "heartbeatThreadPoolNums", "litePullMessageThreadPoolNums",
        "loadBalanceProcessorThreadPoolNums", "processReplyMessageThreadPoolNums", "pullMessageThreadPoolNums",
        "putMessageFutureThreadPoolNums", "queryMessageThreadPoolNums", "sendMessageThreadPoolNums", "asyncSendEnable",
        "recoverConcurrently", "recoverThreadPoolNums", "maxAsyncPutMessageRequests",
    ),
    _TURNS: (
        "ackThreadPoolQueueCapacity", "adminBrokerThreadPoolQueueCapacity", "clientManagerThreadPoolQueueCapacity",
        "consumerManagerThreadPoolQueueCapacity", "endTransactionPoolQueueCapacity", "heartbeatThreadPoolQueueCapacity",
        "loadBalanceThreadPoolQueueCapacity", "putThreadPoolQueueCapacity", "queryThreadPoolQueueCapacity",
        "replyThreadPoolQueueCapacity", "litePullThreadPoolQueueCapacity",
        "serverOnewaySemaphoreValue", "enableNetWorkFlowControl",
    ),
    _OWN: ("serverAsyncSemaphoreValue",),
    _NETTY: (
        "serverCallbackExecutorThreads", "serverNettyWorkerGroupEnable", "serverPooledByteBufAllocatorEnable",
        "serverSelectorThreads", "serverWorkerThreads", "useEpollNativeSelector", "enableShutdownGracefully",
        "shutdownWaitTimeSeconds", "disableNettyWorkerGroup", "clientPooledByteBufAllocatorEnable", "clientWorkerThreads",
        "clientCallbackExecutorThreads", "disableCallbackExecutor", "enableFastChannelEventProcess",
    ),
    _BUFFERS: (
        "serverSocketRcvBufSize", "serverSocketSndBufSize", "clientSocketRcvBufSize", "clientSocketSndBufSize",
        "writeBufferHighWaterMark", "writeBufferLowWaterMark",
    ),
    _CALLS: (
        "channelNotActiveInterval", "clientAsyncSemaphoreValue", "clientChannelMaxIdleTimeSeconds", "clientCloseSocketIfTimeout",
        "clientOnewaySemaphoreValue", "connectTimeoutMillis", "enableReconnectForGoAway", "isScanAvailableNameSrv",
        "scanAvailableNameSrv", "socksProxyConfig",
    ),
    _ROCKSDB: (
        "batchDispatchRequestThreadPoolNums", "bottomMostCompressionTypeForConsumeQueueStore", "cleanRocksDBDirtyCQIntervalMin",
        "configManagerVersion", "enableRocksDBLog", "memTableFlushIntervalMs", "realTimePersistRocksDBConfig",
        "rocksdbCQDoubleWriteEnable", "rocksdbCompressionType", "rocksdbFlushWalFrequency", "rocksdbWalFileRollingThreshold",
        "statRocksDBCQIntervalSec", "storeType", "consumerOffsetUpdateVersionStep",
    ),
    _DLEDGER: (
        "dLegerGroup", "dLegerPeers", "dLegerSelfId", "enableBatchPush", "enableDLegerCommitLog", "preferredLeaderId",
        "storePathDLedgerCommitLog",
    ),
    _CONTROLLER: (
        "asyncLearner", "brokerElectionPriority", "checkSyncStateSetPeriod", "controllerAddr", "controllerHeartBeatTimeoutMills",
        "enableControllerMode", "fetchControllerAddrByDnsLookup", "haMaxTimeSlaveNotCatchup", "storePathBrokerIdentity",
        "storePathEpochFile", "syncControllerMetadataPeriod", "syncFromLastFile", "syncBrokerMetadataPeriod",
    ),
    _COPIES: (
        "allAckInSyncStateSet", "enableAutoInSyncReplicas", "totalReplicas", "minInSyncReplicas",
    ),
    _ACTING: (
        "syncMasterFlushOffsetWhenStartup", "offsetCheckInSlave",
    ),
    "a queue's lock is one broker's; ordered topics (orderCoordinator) keep order over a change of the master": (
        "lockInStrictMode",
    ),
    _SWAP: (
        "destroyMapedFileIntervalForcibly", "putConsumeQueueDataByFileChannel", "timerWarmEnable",
    ),
    _LOCKS: (
        "debugLockEnable", "spinLockCollisionRetreatOptimalDegree", "topicQueueLockNum", "useABSLock",
        "useReentrantLockWhenPutMessage", "osPageCacheBusyTimeOutMills",
    ),
    _DISPATCH: (
        "enableBuildConsumeQueueConcurrently", "readUnCommitted", "recheckReputOffsetFromCq", "bitMapLengthConsumeQueueExt",
    ),
    _POP_BUFFER: (
        "popCkMaxBufferSize", "popCkOffsetMaxQueueSize", "popCkStayBufferTime", "popCkStayBufferTimeOut", "enablePopBufferMerge",
        "enablePopBatchAck", "appendAckAsync", "appendCkAsync", "reviveScanTime", "popReviveMaxReturnSizePerRead",
        "popReviveMaxAttemptTimes",
    ),
    "a pop that finds nothing waits by group and queue, limited by maxPopPollingSize, and wakes for matching messages": (
        "popPollingMapSize", "popLongPollingForceNotifyInterval", "enableNotifyBeforePopCalculateLag",
    ),
    _POP_KV: (
        "popConsumerFSServiceInit", "popConsumerKVServiceEnable", "popConsumerKVServiceInit", "popConsumerKVServiceLog",
        "enablePopLog",
    ),
    _COMPACTION: (
        "compactionCqMappedFileSize", "compactionMappedFileSize", "compactionScheduleInternal", "compactionThreadNum",
        "enableCompaction", "maxOffsetMapSize",
    ),
    _LMQ: (
        "enableLmq", "enableLmqStats", "enableMultiDispatch",
    ),
    _BILLING: (
        "accountStatsEnable", "accountStatsPrintZeroValues", "commercialBaseCount", "commercialSizePerMsg",
    ),
    _STATISTICS: (
        "autoDeleteUnusedStats", "diskFallRecorded", "enableDetailStat", "enableScheduleMessageStats",
        "maxStatsIdleTimeInMinutes", "isolateLogEnable", "printChannelGroups", "printChannelGroupsMinNum",
    ),
    _COLD: (
        "coldCtrStrategyEnable", "coldDataScanEnable", "timerColdDataCheckIntervalMs", "usePIDColdCtrStrategy",
    ),
    _CONTAINER: (
        "inBrokerContainer", "isBrokerContainer", "isInBrokerContainer", "replicasPerDiskPartition",
    ),
    _TIMER_THREADS: (
        "timerCheckMetricsWhen", "timerEnableCheckMetrics", "timerEnableDisruptor", "timerEnableRetryUntilSuccess",
        "timerGetMessageThreadNum", "timerMetricSmallThreshold", "timerProgressLogIntervalMs", "timerPutMessageThreadNum",
        "timerSkipUnknownError",
    ),
    _SCHEDULE: (
        "enableScheduleAsyncDeliver", "timerInterceptDelayLevel", "scheduleAsyncDeliverMaxPendingLimit",
        "scheduleAsyncDeliverMaxResendNum2Blocked",
    ),
    _CACHE: (
        "aclCacheExpiredSecond", "aclCacheMaxNum", "aclCacheRefreshSecond", "userCacheExpiredSecond", "userCacheMaxNum",
        "userCacheRefreshSecond",
    ),
    _REGISTRATION: (
        "forceRegister", "enableSingleTopicRegister", "enableSplitRegistration", "splitRegistrationSize",
    ),
    _TRANSFER: (
        "transferMsgByHeap", "travelCqFileNumWhenGetMessage", "searchBcqByCacheEnable",
    ),
    _RECOVERY: (
        "disappearTimeAfterStart", "maxChecksumRange", "messageIndexSafe",
    ),
    _OTEL: (
        "metricLoggingExporterIntervalInMills", "metricsInDelta", "metricsOtelCardinalityLimit",
    ),
    "producers, members and subscriptions always come from heartbeats, and members are notified of changes at once": (
        "enableRegisterProducer", "subscriptionExpiredTimeout", "useStaticSubscription", "realTimeNotifyConsumerChange",
        "enableCreateSysGroup",
    ),
    "for Apache's proxy in the broker process, which stores broadcast offsets; here clients store them": (
        "broadcastOffsetExpireMaxSecond", "broadcastOffsetExpireSecond", "enableBroadcastOffsetStore",
    ),
    "old log and queue files are deleted together, by fileReservedTime and disk usage": (
        "logicalDiskSpaceCleanForciblyThreshold", "correctLogicMinOffsetForceInterval", "correctLogicMinOffsetSleepInterval",
        "readOnlyCommitLogStorePaths",
    ),
    "a group that is far behind is reported (GroupFallsBehind), but never stopped from consuming": (
        "disableConsumeIfConsumerReadSlowly", "consumerFallbehindThreshold",
    ),
    "topic names have at most 127 characters, which fit in every record": ("autoMessageVersionOnTopicLen",),
    "properties have no own checksum; bodies have one (checkCRCOnRecover)": (
        "enabledAppendPropCRC", "forceVerifyPropCRC",
    ),
    "slaves pull copies of the log (brokerRole)": ("duplicationEnable",),
    "the broker loads no plug-ins": ("messageStorePlugIn",),
    "accounts are stored in config/ of the store, as by default in Apache's broker": ("authConfigPath",),
    _UNREAD: (
        "putMessageTimeout", "serverSocketBacklog", "maxReconnectIntervalTimeSeconds", "maxSlaveResendLength",
        "cleanOfflineBrokerInterval", "cleanSwapedMapInterval", "commitLogForceSwapMapInterval", "commitLogSwapMapInterval",
        "commitLogSwapMapReserveFileNum", "logicQueueForceSwapMapInterval", "logicQueueSwapMapInterval",
        "logicQueueSwapMapReserveFileNum", "mappedFileSwapEnable", "dispatchCqCacheNum", "dispatchCqThreads",
        "dispatchFromSenderThread", "enableAsyncReput", "putMsgIndexHightWater", "maxLmqConsumeQueueNum", "highSpeedMode",
        "pullBatchMaxMessageCount", "maxRecoveryCommitlogFiles", "maxBatchDeleteFilesNum", "enableCleanExpiredOffset",
        "maxTopicLength", "flushConsumerOffsetHistoryInterval",
    ),
    "the flush thread runs at its interval, and at once for waiting senders": (
        "wakeCommitWhenPutMessage", "wakeFlushWhenPutMessage",
    ),
    "lag is counted by offsets, and is not estimated for groups with filters": (
        "estimateAccumulation", "maxConsumeQueueScan", "sampleCountThreshold", "sampleSteps",
    ),
    "the kernel decides what stays in memory": ("accessMessageInMemoryHotRatio",),
    "for the name server, not for the broker": ("configBlackList",),
    "set by Apache's start script": (
        "clusterName", "configName",
    ),
}  # fmt: skip

REASONS: Mapping[str, str] = {key: reason for reason, keys in _BY_REASON.items() for key in keys}


def reason_of(key: str) -> str:
    """Return the reason, or else the class of Apache's that has the key, or else that no class has it."""
    forms = known_keys().get(key)
    return REASONS.get(key) or (f"for Apache's {forms[0].classes[0]}" if forms else "for no class of Apache's")
