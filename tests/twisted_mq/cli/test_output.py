import io
import re

import pytest

from twisted_mq.cli.output import json_line, plain_row, print_table, progress


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_piped_table_is_lines_with_tabs():
    out = io.StringIO()
    print_table(["queue", "offset"], [[0, 12], [1, None]], out)
    assert out.getvalue() == "queue\toffset\n0\t12\n1\t\n"


def test_tabs_and_line_ends_inside_values_do_not_break_rows():
    assert plain_row(["a\tb\nc\r", 1]) == "a\\tb\\nc\\r\t1"


def test_a_terminal_gets_a_boxed_table_without_markup():
    out = Terminal()
    print_table(["queue"], [["[bold]x"]], out)
    lines = out.getvalue().splitlines()
    assert any("queue" in line for line in lines)
    assert any("[bold]x" in line for line in lines)
    assert len(lines) == 5


def test_progress_is_silent_off_a_terminal():
    out = io.StringIO()
    with progress("reading", 10, out) as advance:
        advance(10)
    assert out.getvalue() == ""


def test_progress_shows_a_bar_on_a_terminal():
    out = Terminal()
    with progress("reading", 10, out) as advance:
        advance(10)
    assert "reading" in out.getvalue()


@pytest.mark.parametrize("wanted", [True, False], ids=["as they are", "NO_COLOR"])
def test_colours_are_left_out_where_nobody_wants_them(monkeypatch, wanted):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not wanted:
        monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    with progress("reading", 10, out) as advance:
        advance(5)
    colours = re.findall(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])[;m]", out.getvalue())
    assert bool(colours) is wanted


def test_json_lines_are_compact_and_keep_their_order():
    assert json_line({"b": "ü", "a": None}) == '{"b":"ü","a":null}\n'


@pytest.mark.parametrize("width", [40, 80, 200])
def test_message_ids_are_never_cut_nor_broken(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    out = Terminal()
    row = ["SEND_OK", "7F00000112340A4B5C6D7E8F90ABCDEF", "a-broker-with-a-long-name", 3, 123456789]
    print_table(["status", "msgId", "broker", "queueId", "queueOffset"], [row], out)
    assert row[1] in out.getvalue()
    assert "…" not in out.getvalue()


def test_without_the_extra_there_is_no_bar(monkeypatch):
    """The admin tool is in the base installation, where nothing draws one."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    stream = Terminal()
    with progress("queues", 10, stream) as advance:
        advance(1)
    assert stream.getvalue() == ""
