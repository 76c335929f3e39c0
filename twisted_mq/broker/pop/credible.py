"""Checks that a broker can have written a check point: strangers or damage can put others into its revive log. Pure."""

from __future__ import annotations

from twisted_mq.protocol.bodies import PopCheckPoint
from twisted_mq.protocol.bodies.pop import MOST_POPPED
from twisted_mq.protocol.text.java import parse_int

CLOCK_SLACK_MS = 60_000


def check_point_fault(point: PopCheckPoint, stored_ms: int, longest_ms: int) -> str | None:
    """Return why a check point stored at `stored_ms` is not credible; None for a good one.

    It stays in the log until it is settled, and those after it wait for it. So its time must be one that the timer serves.
    """
    differences = point.offset_differences or []
    times = parse_int(point.times_put_again or "0")
    faults = {
        f"n: 0 to {MOST_POPPED} messages, got {point.count}": not 0 <= point.count <= MOST_POPPED,
        f"d: an offset for each of {point.count} messages, got {len(differences)}": (
            len(differences) not in (0, point.count)
        ),
        "d: offsets that rise from 0 on": sorted(set(differences)) != differences or min(differences, default=0) < 0,
        f"so: an offset, got {point.start_offset}": point.start_offset < 0,
        f"q: a queue, got {point.queue_id}": point.queue_id < 0,
        f"pt, it: a time that the timer serves, got {point.pop_time} and {point.invisible_time}": (
            not 0 <= point.revive_time <= stored_ms + longest_ms + CLOCK_SLACK_MS
        ),
        f"rp: a number of tries, got {point.times_put_again!r}": times is not None and times < 0,
    }
    return next((text for text, applies in faults.items() if applies), None)
