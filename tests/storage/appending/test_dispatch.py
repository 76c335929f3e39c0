"""The dispatcher by itself, over queues that only note what they get."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.storage.appending.dispatch import EVERYTHING, Dispatcher


@attrs.define(eq=False)
class NotedQueue:
    topic: str = "TopicA"
    queue_id: int = 0
    max_offset: int = 0
    entries: list[tuple[int, int, int]] = attrs.field(factory=list)

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        self.entries.append((physical_offset, size, tags_code))
        self.max_offset += 1

    def append_many(self, numbers: Sequence[int]) -> None:
        for index in range(0, len(numbers), 3):
            self.append(*numbers[index : index + 3])


def test_records_up_to_an_offset_are_written_in_order() -> None:
    first, second = NotedQueue(), NotedQueue(queue_id=1)
    dispatcher = Dispatcher()
    dispatcher.pending += [(first, 0, 10, 1, 100), (second, 10, 10, 2, 200), (first, 20, 10, 3, 300)]
    dispatcher.run(29)
    assert (first.entries, second.entries) == ([(0, 10, 1)], [(10, 10, 2)])
    assert (dispatcher.pending, dispatcher.last_store_timestamp) == ([(first, 20, 10, 3, 300)], 200)
    dispatcher.run(EVERYTHING)
    assert (first.entries, dispatcher.pending, dispatcher.last_store_timestamp) == ([(0, 10, 1), (20, 10, 3)], [], 300)


def test_nothing_pending_is_nothing_to_do() -> None:
    dispatcher = Dispatcher()
    dispatcher.run(EVERYTHING)
    assert (dispatcher.pending, dispatcher.last_store_timestamp) == ([], 0)


def test_dropping_a_queue_forgets_its_records_only() -> None:
    first, second = NotedQueue(), NotedQueue()
    dispatcher = Dispatcher()
    dispatcher.pending += [(first, 0, 10, 1, 100), (second, 10, 10, 2, 200)]
    dispatcher.drop(first)
    dispatcher.run(EVERYTHING)
    assert (first.entries, second.entries) == ([], [(10, 10, 2)])


def test_records_put_together_become_visible_together_and_each_tags_code_is_told_once() -> None:
    queue, heard = NotedQueue(max_offset=5), list[tuple[object, ...]]()

    def arrived(*event: object) -> None:
        heard.append((*event, queue.max_offset))

    dispatcher = Dispatcher()
    dispatcher.pending += [(queue, 0, 10, 1, 100), (queue, 10, 30, [10, 10, 7, 20, 10, 8, 30, 10, 7], 200)]
    assert dispatcher.hidden() == {0, 10, 20, 30}
    dispatcher.run(39, arrived)
    assert (queue.max_offset, dispatcher.last_store_timestamp, heard) == (6, 100, [("TopicA", 0, 5, 1, 100, 6)])
    dispatcher.run(40, arrived)
    assert queue.entries == [(0, 10, 1), (10, 10, 7), (20, 10, 8), (30, 10, 7)]
    assert heard[1:] == [("TopicA", 0, 6, 7, 200, 9), ("TopicA", 0, 7, 8, 200, 9)]
    assert (dispatcher.pending, dispatcher.last_store_timestamp, dispatcher.hidden()) == ([], 200, set())
