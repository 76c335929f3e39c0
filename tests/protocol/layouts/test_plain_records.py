"""Plain records made together equal those made one by one, and hold what the layout says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.plain_records import encode_plain_records, encode_tails, plain_head_bytes
from twisted_mq.protocol.layouts.record_codec import encode_record

HOSTS = (b"\x0a\x00\x00\x01\x00\x00\x12\x34", bytes(range(20)))


@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=200), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), min_size=1
    ),
    st.text("abc", min_size=1, max_size=127),
    st.integers(0, 99),
    st.sampled_from(HOSTS),
    st.sampled_from(HOSTS),
)
def test_they_equal_records_made_one_by_one(
    messages: list[tuple[bytes, int, int]], topic: str, left_out: int, born: bytes, host: bytes
) -> None:
    properties = [b"UNIQ_KEY\x01A\x02" * (1 + len(body) % 2) for body, _, _ in messages]
    tails = encode_tails(topic, properties)
    kept = messages[: max(1, len(messages) - left_out)]
    bodies = [body for body, _, _ in messages]
    head = plain_head_bytes(born, host)
    sizes = [head + len(body) + len(tail) for body, tail in zip(bodies, tails, strict=True)]
    places = [1000 + sum(sizes[:index]) for index in range(len(sizes))]
    numbers = [number for _, number, _ in messages]
    times = [time for _, _, time in messages]
    made = encode_plain_records(
        bodies, tails, sizes, [len(body) for body in bodies], numbers, numbers[: len(kept)], places, times,
        flag=7, sys_flag=1, born_host=born, store_timestamp=5, store_host=host, reconsume_times=3,
    )  # fmt: skip
    assert made == b"".join(
        encode_record(topic.encode(), body, text, number, number, place, time, born, 5, host, 7, 1, 3)
        for (body, number, time), text, place in zip(kept, properties, places, strict=False)
    )
