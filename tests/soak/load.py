"""Results of the honest load, and their comparison with the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from statistics import quantiles

import attrs

from tests.soak.attacks import HONEST_TOPIC
from twisted_mq.storage.columns.walk import LogFiles
from twisted_mq.storage.tools.filters import RecordFilter, SelectedMessages

OK = "SEND_OK"
Place = tuple[int, int]
"""Queue id and queue offset."""
Name = tuple[int, int]
"""Key and number."""


@attrs.frozen
class Sent:
    """A send. It was due at `due_ms`, and ended `micros` later."""

    due_ms: int
    micros: int
    name: Name
    status: str
    place: Place


def read_sent(path: Path) -> list[Sent]:
    lines = (line.split() for line in path.read_text().splitlines())
    return [
        Sent(int(due), int(micros), (int(key), int(number)), status, (int(queue), int(offset)))
        for due, micros, key, number, status, queue, offset in lines
    ]


def read_received(path: Path) -> Iterator[tuple[int, Name]]:
    """(ms since it was made, which) of each delivery."""
    for line in path.read_text().splitlines():
        age, key, number, _, _ = map(int, line.split())
        yield age, (key, number)


def stored(store: Path, topic: str = HONEST_TOPIC) -> Iterator[tuple[Name, Place]]:
    """The honest messages in a store at rest, in the log's order."""
    for message in SelectedMessages(LogFiles(str(store), None), RecordFilter([topic])):
        key, number, _ = message.body.split(b" ", 2)
        yield (int(key), int(number)), (message.queue_id, message.queue_offset)


def wrong(sent: Iterable[Sent], found: Iterable[tuple[Name, Place]]) -> list[str]:
    """Acknowledged messages that are not where their answers said, and messages that are there twice or out of order."""
    places: dict[Name, Place] = {}
    problems = []
    last: dict[int, int] = {}
    for (key, number), place in found:
        if number <= last.get(key, -1):
            problems.append(f"message {number} of key {key} at {place} is behind {last[key]}")
        last[key] = number
        places[key, number] = place
    problems += [
        f"message {one.name} was acknowledged at {one.place}, and is at {places.get(one.name)}"
        for one in sent
        if one.status == OK and places.get(one.name) != one.place
    ]
    return problems


def percentile(values: Collection[int], percent: int) -> float:
    """Raises StatisticsError where there are fewer than two."""
    return quantiles(values, n=100)[percent - 1]
