"""Command lines against what Apache's tool printed for them (5.3.3, MQAdminStartup; descriptions are our own)."""

import pytest

from twisted_mq.cli.admin.command_line import (
    GLOBAL_OPTIONS,
    CommandLine,
    Option,
    UsageError,
    help_text,
    parse_command_line,
)
from twisted_mq.cli.admin.registry import find_sub_command

TOPIC_ROUTE = (
    *GLOBAL_OPTIONS,
    Option("t", "topic", "topic name", required=True),
    Option("l", "list", "a table", has_arg=False),
)
UPDATE_TOPIC = (*GLOBAL_OPTIONS, *find_sub_command("updateTopic").options)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["-t", "Orders"], {"t": "Orders"}),
        (["-tOrders"], {"t": "Orders"}),
        (["-t=Orders"], {"t": "Orders"}),
        (["--topic", "Orders"], {"t": "Orders"}),
        (["--topic=Orders"], {"t": "Orders"}),
        (["--top", "Orders"], {"t": "Orders"}),
        (["-topic", "Orders"], {"t": "Orders"}),
        (["-topic=Orders"], {"t": "Orders"}),
        (["-t", '"Orders"'], {"t": "Orders"}),
        (["-t", "-x"], {"t": "-x"}),
        (["-t", "-"], {"t": "-"}),
        (["-lt", "Orders"], {"t": "Orders", "l": ""}),
        (["-ltOrders"], {"t": "Orders", "l": ""}),
        (["left", "-t", "Orders", "over"], {"t": "Orders"}),
        (["-t", "Orders", "-t", "Second"], {"t": "Orders"}),
        (["-t", "Orders", "--", "-l"], {"t": "Orders"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_spelling_of_an_option_is_read(arguments, values):
    assert parse_command_line(TOPIC_ROUTE, arguments) == CommandLine(values)


@pytest.mark.parametrize(
    ("options", "arguments", "text"),
    [
        (TOPIC_ROUTE, [], "Missing required option: t"),
        (TOPIC_ROUTE, ["-t"], "Missing argument for option: t"),
        (TOPIC_ROUTE, ["-t", "-l"], "Missing argument for option: t"),
        (TOPIC_ROUTE, ["-zz"], "Unrecognized option: -zz"),
        (TOPIC_ROUTE, ["-lz"], "Unrecognized option: -lz"),
        (TOPIC_ROUTE, ["--zz"], "Unrecognized option: --zz"),
        (TOPIC_ROUTE, ["--list=yes"], "Unrecognized option: --list=yes"),
        (UPDATE_TOPIC, ["--un", "true", "--o", "x", "--r", "1", "--b", "x"], "Missing required option: t"),
        (
            UPDATE_TOPIC,
            ["-t", "x", "-b", "a", "-c", "b"],
            "The option 'c' was specified but an option from this group has already been selected: 'b'",
        ),
        (
            (*GLOBAL_OPTIONS, Option("a", "nameOne", ""), Option("b", "nameTwo", "")),
            ["--name", "x"],
            "Ambiguous option: '--name'  (could be: 'namesrvAddr', 'nameOne', 'nameTwo')",
        ),
    ],
)
def test_a_wrong_command_line_says_what_apaches_says(options, arguments, text):
    with pytest.raises(UsageError) as caught:
        parse_command_line(options, arguments)
    assert str(caught.value) == text


def test_missing_group_and_option_are_named_in_order_of_declaration():
    with pytest.raises(UsageError) as caught:
        parse_command_line(UPDATE_TOPIC, [])
    group = f"[-b {UPDATE_TOPIC[2].text}, -c {UPDATE_TOPIC[3].text}]"
    assert str(caught.value) == f"Missing required options: {group}, t"


def test_values_are_trimmed_and_numbers_checked():
    line = CommandLine({"t": " Orders ", "r": "8", "w": "many"})
    assert (line.value("t"), line.value("x"), line.number("r", 1), line.number("p", 6)) == ("Orders", "", 8, 6)
    with pytest.raises(UsageError, match="Option -w must be a whole number, got 'many'"):
        line.number("w", 8)


def test_usage_of_a_command_with_a_group_wraps_as_apaches_does():
    assert help_text("updateTopic", UPDATE_TOPIC).splitlines()[:3] == [
        "usage: mqadmin updateTopic [-a <arg>] -b <arg> | -c <arg>  [-h] [-n <arg>] [-o <arg>] [-p <arg>] [-r <arg>]",
        "       [-s <arg>] -t <arg> [-u <arg>] [-w <arg>]",
        " -a,--attributes <arg>       changes of attributes: +key=value,-key",
    ]


def test_help_lists_the_options_in_one_column():
    assert help_text("topicRoute", TOPIC_ROUTE).splitlines() == [
        "usage: mqadmin topicRoute [-h] [-l] [-n <arg>] -t <arg>",
        " -h,--help                Print help",
        " -l,--list                a table",
        " -n,--namesrvAddr <arg>   name servers as host:port, separated by ';' (default: the variable NAMESRV_ADDR)",
        " -t,--topic <arg>         topic name",
    ]


@pytest.mark.parametrize("name", ["nosuch", "hex", "\udc80", "a\0b"])
def test_a_name_that_no_charset_has(name):
    with pytest.raises(UsageError, match="Option -f: unknown charset"):
        CommandLine({"f": name}).charset("f")


def test_charsets_times_and_switches():
    line = CommandLine({"f": " GBK ", "t": "true", "s": "no", "b": "2026-11-20#23:27:22:099", "i": "a, ,b"})
    assert (line.charset("f"), line.charset("x")) == ("GBK", "UTF-8")
    assert (line.is_true("t"), line.is_true("s"), line.is_true("x", True)) == (True, False, True)
    assert (line.time("b", 0) % 60_000, line.parts("i")) == (22_099, ["a", "b"])
    assert CommandLine({"b": "now"}).time("b", 5) == 5


@pytest.mark.parametrize("text", ["yesterday", "9999-12-31#23:59:59", "²", "9" * 5000, ""])
def test_what_is_no_time_is_wrong_usage(text):
    with pytest.raises(UsageError, match="Option -b must be ms since 1970"):
        CommandLine({"b": text}).time("b", 0)


def test_bytes_that_are_no_text_are_wrong_usage():
    with pytest.raises(UsageError, match=r"Option -t must be text in UTF-8, got '\\udcff'"):
        parse_command_line(TOPIC_ROUTE, ["-t", "\udcff"])
    assert parse_command_line(TOPIC_ROUTE, ["-t", "中"]).value("t") == "中"
