"""The receipt of a message whose invisible time changes in the moment of its pop."""

from __future__ import annotations

from pathlib import Path

from tests.support.pop import PopDesk, messages


def test_a_change_in_the_moment_of_the_pop_counts_as_of_the_next_millisecond(tmp_path: Path) -> None:
    """The new receipt is another one than the old, and claims no time that is further ahead."""
    desk = PopDesk(tmp_path)
    desk.send("a")
    (message,) = messages(desk.pop(queueId=0))
    answer = desk.change(message, 20000)
    assert (answer.code, answer.ext_fields["popTime"]) == (0, str(desk.now + 1))
