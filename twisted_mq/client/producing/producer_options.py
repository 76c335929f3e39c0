"""Settings of a producer (Apache: DefaultMQProducer)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import attrs

from twisted_mq.client.core.errors import ClientOptionIllegal
from twisted_mq.client.core.option_checks import hooks, kind, number
from twisted_mq.client.producing.accumulator import AutoBatch
from twisted_mq.client.producing.send_hooks import SendHook
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.messages.compression import CompressionType, check_compressor
from twisted_mq.protocol.messages.trace import TRACE_TOPIC

RETRY_RESPONSE_CODES = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    }
)
"""Refusals after which another broker may accept the message (Apache: DefaultMQProducer.retryResponseCodes)."""


@attrs.frozen
class SendLimits:
    """Limits above which a message is refused before it is sent, or compressed."""

    max_message_size: int = attrs.field(default=4 * 1024 * 1024, validator=number(1))
    compress_over_bytes: int = attrs.field(default=4 * 1024, validator=number(0))
    """compressMsgBodyOverHowmuch: bodies of at least this size are compressed, those of a batch are not."""
    compress_type: CompressionType = attrs.field(default=CompressionType.ZLIB, validator=kind(CompressionType))
    compress_level: int = attrs.field(default=5, validator=number(0, 22))
    """1 to 9 for ZLIB, to 22 for ZSTD; LZ4 has none."""

    def __attrs_post_init__(self) -> None:
        """Raise CompressorMissing if the library of `compress_type` is not installed."""
        check_compressor(self.compress_type)
        if self.compress_type is CompressionType.ZLIB and self.compress_level > zlib.Z_BEST_COMPRESSION:
            raise ClientOptionIllegal(
                f"SendLimits.compress_level: must be at most 9 for ZLIB, got {self.compress_level}"
            )


@attrs.frozen
class ProducerOptions:
    """Options of a producer. Defaults are Apache's. Times are in seconds."""

    send_timeout_seconds: float = attrs.field(default=3.0, validator=number(0))
    """sendMsgTimeout: the limit for all attempts of one send together, from when it is written."""
    max_in_flight: int = attrs.field(default=1000, validator=number(1))
    """The most sends that wait for an answer at a time; any number of further sends wait for their turn."""
    max_in_flight_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=number(1))
    """The same limit for the bodies of all sends in bytes; a larger body is sent alone."""
    max_sends_per_second: float | None = attrs.field(default=None, validator=attrs.validators.optional(number(0.001)))
    """The rate limit; further sends wait for their turn, and a batch is one send. None for no limit."""
    retry_times: int | None = attrs.field(default=None, validator=attrs.validators.optional(number(0)))
    """retryTimesWhenSendFailed: the most retries, on another broker if one is available. Apache: 2.

    None, the default: as many as the timeout allows, and two after a refusal that does not pass by itself.
    """
    retry_when_not_stored_ok: bool = attrs.field(default=False, validator=kind(bool))
    """retryAnotherBrokerWhenNotStoreOK: also retry when the status is not SEND_OK."""
    retry_response_codes: frozenset[int] = attrs.field(default=RETRY_RESPONSE_CODES, converter=frozenset)
    """retryResponseCodes: the refusals after which a send is retried."""
    default_topic_queue_nums: int = attrs.field(default=4, validator=number(1))
    """Queues of a topic that the first send creates."""
    batch_unique_key: bool = attrs.field(default=False, validator=kind(bool))
    """Give a batch one unique key in place of its messages' own, as topics of the queue type BatchCQ require."""
    send_latency_fault: bool = attrs.field(default=False, validator=kind(bool))
    """sendLatencyFaultEnable: leave slow and failing brokers out for a while."""
    auto_batch: AutoBatch | None = attrs.field(default=None, validator=kind(AutoBatch, type(None)))
    """autoBatch: gather single sends with the same topic, queue and tag into batches for a moment."""
    hooks: Sequence[SendHook] = attrs.field(default=(), validator=hooks)
    """Hooks that are called before and after every send."""
    limits: SendLimits = attrs.field(factory=SendLimits, validator=kind(SendLimits))
    message_trace: bool = attrs.field(default=False, validator=kind(bool))
    """enableTrace: send a record of each message to the brokers' trace topic."""
    trace_topic: str = attrs.field(default=TRACE_TOPIC, validator=kind(str))
    vip_channel: bool = attrs.field(default=False, validator=kind(bool))
    """vipChannelEnabled: send to the broker's fast port, two below the one it announces."""
