"""Counts of messages of ordered topics that a full disk deleted before they were consumed."""

from __future__ import annotations

import pytest

from twisted_mq.ordering.deleted import DELETED_UNCONSUMED, deleted_of_topic, deleted_text


def test_what_brokers_deleted_is_told_by_topic_and_queue() -> None:
    text = deleted_text({("T", 1): 5, ("T", 0): 685, ("Other", 2): 7})
    assert text == '{"Other/2": 7, "T/0": 685, "T/1": 5}'
    assert deleted_of_topic(text, "T") == {0: 685, 1: 5}
    assert DELETED_UNCONSUMED == "orderedMessagesDeletedUnconsumed"  # brokers of other versions know this row, too
    with pytest.raises(ValueError, match="must be a JSON object"):
        deleted_of_topic("[]", "T")
