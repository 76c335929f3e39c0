"""Checks settings of clients, and overrides them with the server's (Apache: GrpcClientSettingsManager)."""

from __future__ import annotations

from typing import Any

from twisted_mq.protocol.bodies import ExponentialRetryPolicy, SubscriptionGroupConfig
from twisted_mq.protocol.bodies.subscription_group import DEFAULT_DELAYS_MS
from twisted_mq.proxy.client import PUSH_CONSUMER, SIMPLE_CONSUMER
from twisted_mq.proxy.messages import RetryPolicy, Settings
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.proxy.times import duration


def answered_settings(
    settings: Any, options: ProxyOptions, max_body_bytes: int, group: SubscriptionGroupConfig | None
) -> Any:
    """Return a client's settings, overridden by the server's."""
    answer = Settings()
    answer.CopyFrom(settings)
    answer.metric.Clear()
    answer.metric.on = False
    if settings.WhichOneof("pub_sub") == "publishing":
        answer.publishing.validate_message_type = options.enable_topic_message_type_check
        answer.publishing.max_body_size = max_body_bytes
        answer.backoff_policy.CopyFrom(_of_producers(options))
    else:
        group = group or SubscriptionGroupConfig()
        subscription = answer.subscription
        subscription.fifo = group.consume_message_orderly
        subscription.receive_batch_size = options.grpc_client_consumer_long_polling_batch_size
        subscription.long_polling_timeout.CopyFrom(
            duration(options.grpc_client_consumer_max_long_polling_timeout_millis)
        )
        answer.backoff_policy.CopyFrom(_of_consumers(group))
    return answer


def implied_settings(request: Any) -> Any:
    """Return the settings that a ReceiveMessage implies: only push consumers ask for renewals."""
    settings = Settings(client_type=PUSH_CONSUMER if request.auto_renew else SIMPLE_CONSUMER)
    settings.subscription.group.CopyFrom(request.group)
    subscription = settings.subscription.subscriptions.add()
    subscription.topic.CopyFrom(request.message_queue.topic)
    subscription.expression.CopyFrom(request.filter_expression)
    return settings


def _of_producers(options: ProxyOptions) -> Any:
    return RetryPolicy(
        max_attempts=options.grpc_client_producer_max_attempts,
        exponential_backoff={
            "initial": duration(options.grpc_client_producer_backoff_initial_millis),
            "max": duration(options.grpc_client_producer_backoff_max_millis),
            "multiplier": options.grpc_client_producer_backoff_multiplier,
        },
    )


def _of_consumers(group: SubscriptionGroupConfig) -> Any:
    attempts, policy = group.retry_max_times + 1, group.group_retry_policy
    if policy.type == "EXPONENTIAL":
        exponential = policy.exponential_retry_policy or ExponentialRetryPolicy()
        return RetryPolicy(
            max_attempts=attempts,
            exponential_backoff={
                "initial": duration(exponential.initial),
                "max": duration(exponential.max),
                "multiplier": exponential.multiplier,
            },
        )
    customized = policy.customized_retry_policy
    delays = DEFAULT_DELAYS_MS if customized is None else customized.next
    return RetryPolicy(max_attempts=attempts, customized_backoff={"next": [duration(one) for one in delays]})


def max_attempts(group: SubscriptionGroupConfig | None) -> int:
    """Return how often a group receives a message before it becomes a dead letter."""
    return (group or SubscriptionGroupConfig()).retry_max_times + 1
