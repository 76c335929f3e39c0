"""Settings of a producer (Apache: DefaultMQProducer)."""

from __future__ import annotations

import attrs

from twisted_mq.client.producing.message_checks import SendLimits
from twisted_mq.protocol.messages.trace import TRACE_TOPIC


@attrs.frozen
class ProducerOptions:
    """Defaults are Apache's. Times in seconds."""

    send_timeout_seconds: float = 3.0
    """sendMsgTimeout: for all attempts of one send together."""
    retry_times: int = 2
    """retryTimesWhenSendFailed: further attempts after the first, on another broker where there is one."""
    retry_when_not_stored_ok: bool = False
    """retryAnotherBrokerWhenNotStoreOK: also try again when the status is not SEND_OK."""
    default_topic_queue_nums: int = 4
    """Queues of a topic that the first send creates."""
    batch_unique_key: bool = False
    """Give a batch one unique key in place of its messages' own, as topics of the queue type BatchCQ need it."""
    send_latency_fault: bool = False
    """sendLatencyFaultEnable: leave slow and failing brokers out for a while."""
    limits: SendLimits = attrs.Factory(SendLimits)
    message_trace: bool = False
    """enableTrace: tell the brokers' trace topic what became of each message."""
    trace_topic: str = TRACE_TOPIC
    vip_channel: bool = False
    """vipChannelEnabled: send to the broker's fast port, two below the one it announces."""
