"""Options of values that cannot work."""

from __future__ import annotations

from typing import Any

import pytest

from twisted_mq.client import (
    AutoBatch,
    ClientOptionIllegal,
    ClientOptions,
    ConsumerOptions,
    FlowLimits,
    ProducerOptions,
    SendLimits,
)


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (ProducerOptions, "max_in_flight", 0),
        (ProducerOptions, "retry_times", -1),
        (ProducerOptions, "send_timeout_seconds", "3"),
        (ProducerOptions, "max_in_flight_bytes", True),
        (AutoBatch, "max_delay_seconds", 31),
        (SendLimits, "max_message_size", None),
        (ConsumerOptions, "concurrency", 0),
        (ConsumerOptions, "pull_batch_size", 1025),
        (ConsumerOptions, "pop_invisible_seconds", 4),
        (FlowLimits, "max_count", 0),
        (ClientOptions, "heartbeat_seconds", 0),
        (ClientOptions, "connect_timeout_seconds", float("nan")),
    ],
)
def test_a_number_that_cannot_work_is_refused_in_the_options_name(kind: type, option: str, value: Any) -> None:
    with pytest.raises(ClientOptionIllegal) as refused:
        kind(**{option: value})
    assert str(refused.value).startswith(f"{kind.__name__}.{option}: must be a number")
    assert str(refused.value).endswith(f"got {value!r}")


def test_defaults_are_taken() -> None:
    for kind in (ProducerOptions, AutoBatch, SendLimits, ConsumerOptions, FlowLimits, ClientOptions):
        kind()
