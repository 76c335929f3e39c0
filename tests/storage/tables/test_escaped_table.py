"""Waiting messages that another master has, from the table, and its result for a log that lost its end."""

from __future__ import annotations

from twisted_mq.storage.tables.escaped_table import EscapedLevel, EscapedMessages, EscapedTable, EscapedTicks


def table(tmp_path, *levels, ticks=()):
    made = EscapedTable(str(tmp_path / "escaped.json"))
    made.levels, made.ticks = list(levels), list(ticks)
    return made


def test_messages_that_escaped_one_after_the_other_are_one_row(tmp_path):
    escaped = table(tmp_path)
    for offset in (7, 8, 9, 20):
        escaped.note_level(3, offset, (offset * 100, offset))
    escaped.note_level(4, 10, (5, 5))
    assert escaped.levels == [
        EscapedLevel(3, 7, 10, 900, 9),
        EscapedLevel(3, 20, 21, 2000, 20),
        EscapedLevel(4, 10, 11, 5, 5),
    ]
    inside = [offset for offset in range(25) if escaped.has_of_level(3, offset)]
    assert inside == [7, 8, 9, 20]


def test_timed_message_escaped_where_it_was_noted_and_its_tick_was_passed(tmp_path):
    escaped = table(tmp_path, ticks=[EscapedTicks(1000, 5000, 10, 0, 0)])
    cases = {(9, 1000): True, (9, 4000): True, (10, 4000): False, (9, 5000): False, (9, 0): False}
    assert {case: escaped.has_of_timer(*case) for case in cases} == cases


def test_later_moment_of_the_same_run_of_ticks_replaces_the_earlier(tmp_path):
    escaped = table(tmp_path)
    escaped.note_ticks(1000, 2000, 5, (1, 1))
    escaped.note_ticks(1000, 3000, 6, (2, 2))
    escaped.note_ticks(9000, 9500, 7, (3, 3))
    assert escaped.ticks == [EscapedTicks(1000, 3000, 6, 2, 2), EscapedTicks(9000, 9500, 7, 3, 3)]


def test_row_of_a_tick_in_progress_is_replaced_once_the_run_has_passed_it(tmp_path):
    escaped = table(tmp_path)
    escaped.note_ticks(1000, 3000, 5, (1, 1))
    escaped.note_ticks(3000, 4000, 3, (2, 2))
    assert len(escaped.ticks) == 2
    escaped.note_ticks(1000, 4000, 5, (1, 1))
    assert escaped.ticks == [EscapedTicks(1000, 4000, 5, 1, 1)]


def test_row_that_names_more_than_a_run_around_it_stays(tmp_path):
    later, further = EscapedTicks(2000, 9000, 5, 2, 2), EscapedTicks(2000, 3000, 8, 3, 3)
    escaped = table(tmp_path, ticks=[later, further])
    escaped.note_ticks(1000, 4000, 6, (1, 1))
    assert escaped.ticks == [later, further, EscapedTicks(1000, 4000, 6, 1, 1)]


def test_row_is_kept_in_the_file(tmp_path):
    escaped = table(tmp_path, EscapedLevel(3, 7, 10, 900, 9), ticks=[EscapedTicks(1, 2, 3, 4, 5)])
    escaped.save()
    again = EscapedTable(escaped.path)
    again.load()
    assert again.messages() == EscapedMessages(escaped.levels, escaped.ticks)


def test_row_counts_only_in_a_log_that_has_its_last_message(tmp_path):
    """The same offset is given to another message where the log lost its end."""
    rows = [EscapedLevel(3, 0, 2, 100, 10), EscapedLevel(3, 4, 6, 500, 50), EscapedLevel(4, 0, 9, 1, 1)]
    ticks = [EscapedTicks(0, 9, 3, 700, 70), EscapedTicks(0, 9, 8, 700, 71)]
    escaped = table(tmp_path, *rows, ticks=ticks)
    log = {(3, 1): (100, 10), (3, 5): (500, 51)}
    timer = {2: (700, 70), 7: (700, 70)}
    assert escaped.trust(lambda *place: log.get(place), timer.get) == 3
    assert (escaped.levels, escaped.ticks) == ([rows[0]], [ticks[0]])


def test_rows_of_another_broker_are_taken_once(tmp_path):
    row, tick = EscapedLevel(3, 0, 2, 100, 10), EscapedTicks(0, 9, 3, 700, 70)
    escaped = table(tmp_path, row)
    theirs = EscapedMessages([row, EscapedLevel(5, 0, 1, 1, 1)], [tick])
    assert [escaped.take(theirs), escaped.take(theirs)] == [2, 0]
    assert (len(escaped.levels), escaped.ticks) == (2, [tick])
