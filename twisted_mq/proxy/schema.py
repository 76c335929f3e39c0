"""Lists the messages of apache.rocketmq.v2 as a table, with the numbers of Apache's rocketmq-apis up to version 2.1.2.

A message's lines are: number, "optional" or "repeated" if it applies, type, name, and the oneof that the field is in.
Fields of newer clients are unknown here, and protobuf skips them.
"""

from __future__ import annotations

TABLE = """\
message FilterExpression
  1 FilterType type
  2 string expression
message RetryPolicy
  1 int32 max_attempts
  2 ExponentialBackoff exponential_backoff in strategy
  3 CustomizedBackoff customized_backoff in strategy
message ExponentialBackoff
  1 Duration initial
  2 Duration max
  3 float multiplier
message CustomizedBackoff
  1 repeated Duration next
message Resource
  1 string resource_namespace
  2 string name
message SubscriptionEntry
  1 Resource topic
  2 FilterExpression expression
message Address
  1 string host
  2 int32 port
message Endpoints
  1 AddressScheme scheme
  2 repeated Address addresses
message Broker
  1 string name
  2 int32 id
  3 Endpoints endpoints
message MessageQueue
  1 Resource topic
  2 int32 id
  3 Permission permission
  4 Broker broker
  5 repeated MessageType accept_message_types
message Digest
  1 DigestType type
  2 string checksum
message SystemProperties
  1 optional string tag
  2 repeated string keys
  3 string message_id
  4 Digest body_digest
  5 Encoding body_encoding
  6 MessageType message_type
  7 Timestamp born_timestamp
  8 string born_host
  9 optional Timestamp store_timestamp
  10 string store_host
  11 optional Timestamp delivery_timestamp
  12 optional string receipt_handle
  13 int32 queue_id
  14 optional int64 queue_offset
  15 optional Duration invisible_duration
  16 optional int32 delivery_attempt
  17 optional string message_group
  18 optional string trace_context
  19 optional Duration orphaned_transaction_recovery_duration
  20 optional DeadLetterQueue dead_letter_queue
  21 optional string lite_topic
  22 optional int32 priority
message DeadLetterQueue
  1 string topic
  2 string message_id
message Message
  1 Resource topic
  2 map<string,string> user_properties
  3 SystemProperties system_properties
  4 bytes body
message Assignment
  1 MessageQueue message_queue
message Status
  1 Code code
  2 string message
message UA
  1 Language language
  2 string version
  3 string platform
  4 string hostname
message Settings
  1 optional ClientType client_type
  2 optional Endpoints access_point
  3 optional RetryPolicy backoff_policy
  4 optional Duration request_timeout
  5 Publishing publishing in pub_sub
  6 Subscription subscription in pub_sub
  7 UA user_agent
  8 Metric metric
  9 map<string,string> client_properties
message Publishing
  1 repeated Resource topics
  2 int32 max_body_size
  3 bool validate_message_type
message Subscription
  1 optional Resource group
  2 repeated SubscriptionEntry subscriptions
  3 optional bool fifo
  4 optional int32 receive_batch_size
  5 optional Duration long_polling_timeout
  6 optional int32 lite_subscription_quota
  7 optional int32 max_lite_topic_size
message Metric
  1 bool on
  2 optional Endpoints endpoints
message OffsetOption
  1 OffsetOption.Policy policy in offset_type
  2 int64 offset in offset_type
  3 int64 tail_n in offset_type
  4 int64 timestamp in offset_type
message QueryRouteRequest
  1 Resource topic
  2 Endpoints endpoints
message QueryRouteResponse
  1 Status status
  2 repeated MessageQueue message_queues
message SendMessageRequest
  1 repeated Message messages
message SendResultEntry
  1 Status status
  2 string message_id
  3 string transaction_id
  4 int64 offset
  5 string recall_handle
message SendMessageResponse
  1 Status status
  2 repeated SendResultEntry entries
message QueryAssignmentRequest
  1 Resource topic
  2 Resource group
  3 Endpoints endpoints
message QueryAssignmentResponse
  1 Status status
  2 repeated Assignment assignments
message ReceiveMessageRequest
  1 Resource group
  2 MessageQueue message_queue
  3 FilterExpression filter_expression
  4 int32 batch_size
  5 optional Duration invisible_duration
  6 bool auto_renew
  7 optional Duration long_polling_timeout
  8 optional string attempt_id
message ReceiveMessageResponse
  1 Status status in content
  2 Message message in content
  3 Timestamp delivery_timestamp in content
message AckMessageEntry
  1 string message_id
  2 string receipt_handle
  3 optional string lite_topic
message AckMessageRequest
  1 Resource group
  2 Resource topic
  3 repeated AckMessageEntry entries
message AckMessageResultEntry
  1 string message_id
  2 string receipt_handle
  3 Status status
message AckMessageResponse
  1 Status status
  2 repeated AckMessageResultEntry entries
message ForwardMessageToDeadLetterQueueRequest
  1 Resource group
  2 Resource topic
  3 string receipt_handle
  4 string message_id
  5 int32 delivery_attempt
  6 int32 max_delivery_attempts
  7 optional string lite_topic
message ForwardMessageToDeadLetterQueueResponse
  1 Status status
message HeartbeatRequest
  1 optional Resource group
  2 ClientType client_type
message HeartbeatResponse
  1 Status status
message EndTransactionRequest
  1 Resource topic
  2 string message_id
  3 string transaction_id
  4 TransactionResolution resolution
  5 TransactionSource source
  6 string trace_context
message EndTransactionResponse
  1 Status status
message PrintThreadStackTraceCommand
  1 string nonce
message ReconnectEndpointsCommand
  1 string nonce
message ThreadStackTrace
  1 string nonce
  2 optional string thread_stack_trace
message VerifyMessageCommand
  1 string nonce
  2 Message message
message VerifyMessageResult
  1 string nonce
message RecoverOrphanedTransactionCommand
  1 Message message
  2 string transaction_id
message NotifyUnsubscribeLiteCommand
  1 string lite_topic
message TelemetryCommand
  1 optional Status status
  2 Settings settings in command
  3 ThreadStackTrace thread_stack_trace in command
  4 VerifyMessageResult verify_message_result in command
  5 RecoverOrphanedTransactionCommand recover_orphaned_transaction_command in command
  6 PrintThreadStackTraceCommand print_thread_stack_trace_command in command
  7 VerifyMessageCommand verify_message_command in command
  8 ReconnectEndpointsCommand reconnect_endpoints_command in command
  9 NotifyUnsubscribeLiteCommand notify_unsubscribe_lite_command in command
message NotifyClientTerminationRequest
  1 optional Resource group
message NotifyClientTerminationResponse
  1 Status status
message ChangeInvisibleDurationRequest
  1 Resource group
  2 Resource topic
  3 string receipt_handle
  4 Duration invisible_duration
  5 string message_id
  6 optional string lite_topic
  7 optional bool suspend
message ChangeInvisibleDurationResponse
  1 Status status
  2 string receipt_handle
message PullMessageRequest
  1 Resource group
  2 MessageQueue message_queue
  3 int64 offset
  4 int32 batch_size
  5 FilterExpression filter_expression
  6 Duration long_polling_timeout
message PullMessageResponse
  1 Status status in content
  2 Message message in content
  3 int64 next_offset in content
message UpdateOffsetRequest
  1 Resource group
  2 MessageQueue message_queue
  3 int64 offset
message UpdateOffsetResponse
  1 Status status
message GetOffsetRequest
  1 Resource group
  2 MessageQueue message_queue
message GetOffsetResponse
  1 Status status
  2 int64 offset
message QueryOffsetRequest
  1 MessageQueue message_queue
  2 QueryOffsetPolicy query_offset_policy
  3 optional Timestamp timestamp
message QueryOffsetResponse
  1 Status status
  2 int64 offset
message RecallMessageRequest
  1 Resource topic
  2 string recall_handle
message RecallMessageResponse
  1 Status status
  2 string message_id
message SyncLiteSubscriptionRequest
  1 LiteSubscriptionAction action
  2 Resource topic
  3 Resource group
  4 repeated string lite_topic_set
  5 optional int64 version
  6 optional OffsetOption offset_option
message SyncLiteSubscriptionResponse
  1 Status status
enum TransactionResolution
  0 TRANSACTION_RESOLUTION_UNSPECIFIED, 1 COMMIT, 2 ROLLBACK
enum TransactionSource
  0 SOURCE_UNSPECIFIED, 1 SOURCE_CLIENT, 2 SOURCE_SERVER_CHECK
enum Permission
  0 PERMISSION_UNSPECIFIED, 1 NONE, 2 READ, 3 WRITE, 4 READ_WRITE
enum FilterType
  0 FILTER_TYPE_UNSPECIFIED, 1 TAG, 2 SQL
enum AddressScheme
  0 ADDRESS_SCHEME_UNSPECIFIED, 1 IPv4, 2 IPv6, 3 DOMAIN_NAME
enum MessageType
  0 MESSAGE_TYPE_UNSPECIFIED, 1 NORMAL, 2 FIFO, 3 DELAY, 4 TRANSACTION, 5 LITE, 6 PRIORITY
enum DigestType
  0 DIGEST_TYPE_UNSPECIFIED, 1 CRC32, 2 MD5, 3 SHA1
enum ClientType
  0 CLIENT_TYPE_UNSPECIFIED, 1 PRODUCER, 2 PUSH_CONSUMER, 3 SIMPLE_CONSUMER, 4 PULL_CONSUMER,
  5 LITE_PUSH_CONSUMER, 6 LITE_SIMPLE_CONSUMER
enum Encoding
  0 ENCODING_UNSPECIFIED, 1 IDENTITY, 2 GZIP
enum Code
  0 CODE_UNSPECIFIED, 20000 OK, 30000 MULTIPLE_RESULTS, 40000 BAD_REQUEST,
  40001 ILLEGAL_ACCESS_POINT, 40002 ILLEGAL_TOPIC, 40003 ILLEGAL_CONSUMER_GROUP,
  40004 ILLEGAL_MESSAGE_TAG, 40005 ILLEGAL_MESSAGE_KEY, 40006 ILLEGAL_MESSAGE_GROUP,
  40007 ILLEGAL_MESSAGE_PROPERTY_KEY, 40008 INVALID_TRANSACTION_ID, 40009 ILLEGAL_MESSAGE_ID,
  40010 ILLEGAL_FILTER_EXPRESSION, 40011 ILLEGAL_INVISIBLE_TIME, 40012 ILLEGAL_DELIVERY_TIME,
  40013 INVALID_RECEIPT_HANDLE, 40014 MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
  40015 UNRECOGNIZED_CLIENT_TYPE, 40016 MESSAGE_CORRUPTED, 40017 CLIENT_ID_REQUIRED,
  40018 ILLEGAL_POLLING_TIME, 40019 ILLEGAL_OFFSET, 40020 ILLEGAL_LITE_TOPIC,
  40021 INVALID_CLIENT_PROPERTIES, 40100 UNAUTHORIZED, 40200 PAYMENT_REQUIRED, 40300 FORBIDDEN,
  40400 NOT_FOUND, 40401 MESSAGE_NOT_FOUND, 40402 TOPIC_NOT_FOUND, 40403 CONSUMER_GROUP_NOT_FOUND,
  40404 OFFSET_NOT_FOUND, 40800 REQUEST_TIMEOUT, 41300 PAYLOAD_TOO_LARGE,
  41301 MESSAGE_BODY_TOO_LARGE, 41302 MESSAGE_BODY_EMPTY, 42800 PRECONDITION_FAILED,
  42900 TOO_MANY_REQUESTS, 42901 LITE_TOPIC_QUOTA_EXCEEDED, 42902 LITE_SUBSCRIPTION_QUOTA_EXCEEDED,
  43100 REQUEST_HEADER_FIELDS_TOO_LARGE, 43101 MESSAGE_PROPERTIES_TOO_LARGE, 50000 INTERNAL_ERROR,
  50001 INTERNAL_SERVER_ERROR, 50002 HA_NOT_AVAILABLE, 50100 NOT_IMPLEMENTED, 50400 PROXY_TIMEOUT,
  50401 MASTER_PERSISTENCE_TIMEOUT, 50402 SLAVE_PERSISTENCE_TIMEOUT, 50500 UNSUPPORTED,
  50501 VERSION_UNSUPPORTED, 50502 VERIFY_FIFO_MESSAGE_UNSUPPORTED,
  60000 FAILED_TO_CONSUME_MESSAGE
enum Language
  0 LANGUAGE_UNSPECIFIED, 1 JAVA, 2 CPP, 3 DOT_NET, 4 GOLANG, 5 RUST, 6 PYTHON, 7 PHP, 8 NODE_JS,
  9 RUBY, 10 OBJECTIVE_C, 11 DART, 12 KOTLIN
enum LiteSubscriptionAction
  0 PARTIAL_ADD, 1 PARTIAL_REMOVE, 2 COMPLETE_ADD, 3 COMPLETE_REMOVE
enum QueryOffsetPolicy
  0 BEGINNING, 1 END, 2 TIMESTAMP
enum OffsetOption.Policy
  0 LAST, 1 MIN, 2 MAX
"""
