"""Says why keys of Apache's broker have no effect here: one reason for each, for files, tables and warnings."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.config.known_keys import known_keys

_THREADS = "one thread answers all requests: there are no pools of threads, and no queues before them"
_TURNS = (
    "requests are bounded by memory (maxHeldBytes) and by time (waitTimeMillsInSendQueue and the like), not by number"
)
_NETTY = "of Netty's: connections belong to one event loop here"
_BUFFERS = "the buffers of sockets are the system's; what waits to be sent is bounded by maxUnsentBytes"
_CALLS = "of the client inside the broker, which keeps one connection a peer and gives each call a time of its own"
_ROCKSDB = "of stores and tables in RocksDB; here they are files"
_DLEDGER = "of DLedger, which is not served: an ordered topic's groups (orderCoordinator), or a master and slaves, take its place"
_CONTROLLER = (
    "of the controller mode, which is not served: ordered topics (orderCoordinator) move to another group by themselves"
)
_ACTING = "of acting masters: a slave compares its log with its master's, and takes no place in the log from a request"
_SWAP = "files stay mapped, and the kernel takes back their pages by itself"
_LOCKS = "one thread appends: there is no lock to choose"
_DISPATCH = "queue entries are written by the thread that appends, at the end of each turn"
_POP_BUFFER = "check points of pops are written at once and never wait in memory"
_POP_KV = "pops are kept in the revive log and the offsets, not in a store of keys and values"
_COMPACTION = "of compacted topics (cleanup.policy=COMPACTION), which are not served"
_LMQ = "of light queues (LMQ, MultiDispatch), which are not served"
_BILLING = "of a cloud provider's accounts of usage"
_STATISTICS = "statistics are counted once, at the request, and cost too little to be switched off"
_COLD = "cold reads are bounded by group (coldDataFlowControlEnable); pages are not scanned"
_CONTAINER = "of several brokers in one process; start a process for each"
_TIMER_THREADS = "one timer reads and delivers in slices of the reactor's turns"
_SCHEDULE = "delay levels are delivered in slices of the reactor's turns, each in its order"
_CACHE = "accounts are read into memory whole, and changes count at once"
_REGISTRATION = "all topics are registered in one request, changed ones as soon as they change"
_TRANSFER = "answers leave in one write, from the mapped file"
_RECOVERY = "a start recovers from the last file that the checkpoint and the queues vouch for"
_UNREAD = "no code of 5.3.3 reads it"
_OTEL = "the page is made for each scrape, from counters that hold a fixed number of rows"
_COPIES = "of the controller mode's lists of copies; with SYNC_MASTER inSyncReplicas counts"

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
        "replyThreadPoolQueueCapacity", "litePullThreadPoolQueueCapacity", "serverAsyncSemaphoreValue",
        "serverOnewaySemaphoreValue", "enableNetWorkFlowControl",
    ),
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
    "a pop that finds nothing waits by group and queue, bounded by maxPopPollingSize, and wakes for what it may want": (
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
    "producers, members and subscriptions always come from heartbeats, and members are told of changes at once": (
        "enableRegisterProducer", "subscriptionExpiredTimeout", "useStaticSubscription", "realTimeNotifyConsumerChange",
        "enableCreateSysGroup",
    ),
    "of Apache's proxy in the broker's process, which keeps offsets of broadcasts; here clients keep them": (
        "broadcastOffsetExpireMaxSecond", "broadcastOffsetExpireSecond", "enableBroadcastOffsetStore",
    ),
    "old files of the log and of queues go together, as fileReservedTime and the disks' use say": (
        "logicalDiskSpaceCleanForciblyThreshold", "correctLogicMinOffsetForceInterval", "correctLogicMinOffsetSleepInterval",
        "readOnlyCommitLogStorePaths",
    ),
    "a group that is far behind is shown and alerted (GroupFallsBehind), and never stopped from consuming": (
        "disableConsumeIfConsumerReadSlowly", "consumerFallbehindThreshold",
    ),
    "names of topics have 127 characters at most, which every record can hold": ("autoMessageVersionOnTopicLen",),
    "properties have no checksum of their own; bodies have (checkCRCOnRecover)": (
        "enabledAppendPropCRC", "forceVerifyPropCRC",
    ),
    "copies are kept by slaves that ask for the log (brokerRole)": ("duplicationEnable",),
    "the broker loads no code of others": ("messageStorePlugIn",),
    "accounts lie below the store, in config/, as Apache's default has it": ("authConfigPath",),
    _UNREAD: (
        "putMessageTimeout", "serverSocketBacklog", "maxReconnectIntervalTimeSeconds", "maxSlaveResendLength",
        "cleanOfflineBrokerInterval", "cleanSwapedMapInterval", "commitLogForceSwapMapInterval", "commitLogSwapMapInterval",
        "commitLogSwapMapReserveFileNum", "logicQueueForceSwapMapInterval", "logicQueueSwapMapInterval",
        "logicQueueSwapMapReserveFileNum", "mappedFileSwapEnable", "dispatchCqCacheNum", "dispatchCqThreads",
        "dispatchFromSenderThread", "enableAsyncReput", "putMsgIndexHightWater", "maxLmqConsumeQueueNum", "highSpeedMode",
        "pullBatchMaxMessageCount", "maxRecoveryCommitlogFiles", "maxBatchDeleteFilesNum", "enableCleanExpiredOffset",
        "maxTopicLength", "flushConsumerOffsetHistoryInterval",
    ),
    "the flush thread runs by its interval, and at once for senders that wait": (
        "wakeCommitWhenPutMessage", "wakeFlushWhenPutMessage",
    ),
    "lag is counted by offsets, and not estimated for groups with filters": (
        "estimateAccumulation", "maxConsumeQueueScan", "sampleCountThreshold", "sampleSteps",
    ),
    "the kernel decides what stays in memory": ("accessMessageInMemoryHotRatio",),
    "of the name server, not of the broker": ("configBlackList",),
    "set by Apache's own start-up": (
        "clusterName", "configName",
    ),
}  # fmt: skip

REASONS: Mapping[str, str] = {key: reason for reason, keys in _BY_REASON.items() for key in keys}


def reason_of(key: str) -> str:
    """Return the reason, or else the class of Apache's that has the key, or else that no class has it."""
    forms = known_keys().get(key)
    return REASONS.get(key) or (f"of Apache's {forms[0].classes[0]}" if forms else "of no class of Apache's")
