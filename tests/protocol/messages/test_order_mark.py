"""The place of a message in its ordered queue, as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.messages.order_mark import OrderMark

numbers = st.integers(0, 10**17)


@given(numbers, numbers, numbers, st.integers(1, 10**17), numbers)
def test_mark_of_an_ordered_producer_is_read_as_written(epoch, queue, leader, base, above):
    mark = OrderMark(epoch, queue, leader, base, base + above)
    assert mark.encode() == f"{epoch}:{queue}:{leader}:{base}:{base + above}"
    assert OrderMark.decode(mark.encode()) == mark


@given(numbers, numbers)
def test_mark_of_a_plain_producer_has_two_numbers(epoch, queue):
    assert OrderMark(epoch, queue).encode() == f"{epoch}:{queue}"
    assert OrderMark.decode(f"{epoch}:{queue}") == OrderMark(epoch, queue)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "7:0:1",
        "7:0:1:2",
        "7:0:1:2:3:4",
        "07:0",
        "7:-1",
        "7:+1",
        " 7:0",
        "7:0\n",
        "٧:0",
        "7:0:1:3:2",
        "7:0:1:0:2",
    ],
)
def test_other_text_is_refused_whole(text):
    with pytest.raises(ValueError, match="ORDERED") as caught:
        OrderMark.decode(text)
    assert repr(text) in str(caught.value)
