"""The offset from which a start walks through the log."""

from __future__ import annotations

import attrs
import pytest

from tests.storage.conftest import START_MS, OpenFileStore, SettableClock, message, put
from tests.storage.recovery.test_recovery import PER_FILE, RECORD, body_of
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.recovery.start_offset import clean_start, reached_by, unclean_start


@pytest.fixture
def store(open_store: OpenFileStore, clock: SettableClock) -> FileMessageStore:
    """A store of five log files, with a message a second.

    Queue 0 ends in the second file, queue 1 in the last. Queue 2 has the first record of the third.
    """
    store = open_store()
    for number in range(5 * PER_FILE):
        queue_id = 2 if number == 2 * PER_FILE else int(number >= PER_FILE + 5)
        put(store, message(queue_id=queue_id, body=body_of(number)))
        clock.now += 1000
    return store


def test_no_queue_reaches_into_the_log() -> None:
    assert reached_by([]) == 0


def test_clean_start_is_at_the_beginning_of_the_file_that_the_queues_reach(store: FileMessageStore) -> None:
    first, second, _ = store._queues
    assert [reached_by([first]), reached_by([first, second])] == [4096 + 5 * RECORD, 4 * 4096 + PER_FILE * RECORD]
    assert clean_start(store.config, store._log, [first]) == 4096
    assert clean_start(store.config, store._log, [first, second]) == 2 * 4096


@pytest.mark.parametrize(("less", "start"), [(0, 2 * 4096), (1, 2 * 4096 + RECORD)])
def test_clean_start_is_at_a_record_of_a_queue_only_if_too_much_would_be_walked(
    store: FileMessageStore, less: int, start: int
) -> None:
    _, second, _ = store._queues
    most = second.max_physical_offset - 2 * 4096 - less
    assert clean_start(attrs.evolve(store.config, recovery_scan_bytes=most), store._log, [second]) == start


def test_unclean_start_is_nearer_to_the_end_only_if_too_much_would_be_walked(store: FileMessageStore) -> None:
    """All but the last ten messages are known to be on disk."""
    safe, start = START_MS + (5 * PER_FILE - 10) * 1000, 4 * 4096
    walked = PER_FILE * RECORD
    found = [
        unclean_start(attrs.evolve(store.config, recovery_scan_bytes=most), store._log, store._queues, safe)
        for most in (walked + 1, walked, walked - 1)
    ]
    assert found == [start, start, start + 10 * RECORD]
