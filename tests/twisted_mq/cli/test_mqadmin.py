"""The entry point: what is printed where, and exit codes. Nothing here reaches a network."""

import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from twisted.internet import defer

from twisted_mq.cli import mqadmin
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.registry import SubCommand, find_sub_command, served, similar_names, sub_commands
from twisted_mq.cli.errors import CliError, harmless, report
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.remoting.errors import RemotingTimeoutError
from twisted_mq.routing.errors import ClientError

REFERENCE = json.loads((Path(__file__).parent / "admin" / "subcommands.json").read_text())


class Terminal(io.StringIO):
    """A stream that people look at."""

    def isatty(self):
        return True


@pytest.fixture
def no_name_server(monkeypatch):
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)


@pytest.mark.parametrize("command", sub_commands(), ids=lambda command: command.name)
def test_names_aliases_and_options_are_apaches(command):
    wanted = REFERENCE[command.name]
    found = {
        "alias": command.alias,
        "options": [[one.short, one.long, one.has_arg, one.required] for one in command.options],
        "groups": sorted({"".join(other.short for other in command.options if other.group == one.group)
                          for one in command.options if one.group}),
    }  # fmt: skip
    assert found == wanted


def test_a_name_is_found_whatever_its_case():
    assert find_sub_command("TOPICLIST") is find_sub_command("topicList")
    assert find_sub_command("nosuch") is None


def test_without_arguments_all_subcommands_are_listed(capsys):
    assert mqadmin.run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The most commonly used mqadmin commands are:"
    assert lines[1] == "   updateTopic                         make or alter a topic"
    assert [line.split()[0] for line in lines[1 : 1 + len(served())]] == [command.name for command in served()]


def test_help_alone_lists_all_subcommands_too(capsys):
    assert mqadmin.run(["help"]) == 0
    assert capsys.readouterr().out.startswith("The most commonly used mqadmin commands are:\n")


@pytest.mark.parametrize("word", ["-h", "--help", "-help"])
def test_help_of_a_subcommand_asks_for_no_other_option(capsys, word):
    assert mqadmin.run(["topicStatus", word]) == 0
    printed = capsys.readouterr()
    assert (printed.out.startswith("usage: mqadmin topicStatus "), printed.err) == (True, "")


def test_the_version_is_one_line(capsys):
    assert mqadmin.run(["--version"]) == 0
    assert capsys.readouterr().out == f"mqadmin {version('rocketmq-twisted')}, compatible with Apache RocketMQ 5.3.3\n"


@pytest.mark.parametrize("words", [["topicList"], []])
def test_a_closed_pipe_ends_without_a_word(words):
    """Also where the answer comes under the reactor."""
    command = (
        "import sys\n"
        "from twisted_mq.cli import mqadmin\n"
        "async def long(reactor, command, line, addresses):\n    for _ in range(100_000): print('x' * 80, flush=True)\n"
        "mqadmin._execute = long\n"
        f"mqadmin.main([*{words!r}, '-n', 'a:1'] if {words!r} else [])"
    )
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (1, b"")


def test_help_of_a_subcommand(capsys):
    assert mqadmin.run(["help", "topicList"]) == 0
    assert capsys.readouterr().out.startswith("usage: mqadmin topicList [-c] [-h] [--json] [-n <arg>]\n")
    assert mqadmin.run(["topicList", "-h"]) == 0
    assert capsys.readouterr().out.startswith("usage: mqadmin topicList [-c] [-h] [--json] [-n <arg>]\n")


def test_a_subcommand_that_needs_what_is_not_here_says_so(capsys, no_name_server):
    assert mqadmin.run(["electMaster"]) == 1
    assert capsys.readouterr() == (
        "",
        "mqadmin electMaster: this command needs a controller, which this project does not have; use Apache's mqadmin with "
        "Apache's servers\n",
    )


@pytest.mark.parametrize("command", [one for one in sub_commands() if one.module is None], ids=lambda one: one.name)
def test_whatever_is_not_served_ends_with_its_reason_and_has_a_help(capsys, command):
    assert (mqadmin.run([command.name, "-n", "a:1"]), mqadmin.run([command.name, "-h"])) == (1, 0)
    printed = capsys.readouterr()
    assert printed.err == f"mqadmin {command.name}: {command.refusal}\n"
    assert printed.out.startswith(f"usage: mqadmin {command.name} ")


def test_an_end_of_input_is_no_yes(monkeypatch):
    def ended(text):
        raise EOFError

    monkeypatch.setattr("builtins.input", ended)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert not mqadmin._may_go_on(find_sub_command("deleteTopic"), CommandLine({}))


def test_a_subcommand_that_is_not_served_yet_says_so():
    later = SubCommand("later", "do it later", ())
    assert later.refusal == "this command is not implemented; use Apache's mqadmin"


def test_every_subcommand_is_served_or_says_why_not():
    for command in sub_commands():
        assert callable(command.run) if command.module else command.refusal


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("topiclst", ["topicList"]), ("consumerProgres", ["consumerProgress"]), ("frobnicate", [])],
)
def test_a_typo_is_answered_with_what_may_be_meant(typo, meant):
    assert similar_names(typo)[:1] == meant


def test_what_may_be_meant_goes_to_standard_error(capsys):
    assert mqadmin.run(["consumerProgres"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "The sub command consumerProgres not exist.\n"
    assert printed.err.startswith("did you mean consumerProgress")


@pytest.mark.parametrize(("answer", "goes_on"), [("y", True), ("yes", True), ("n", False), ("", False)])
def test_on_a_terminal_what_destroys_something_is_asked_for_first(monkeypatch, answer, goes_on):
    asked = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or answer)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    command = find_sub_command("deleteTopic")
    assert mqadmin._may_go_on(command, CommandLine({})) is goes_on
    assert asked == ["deleteTopic deletes the topic with its messages. Continue? [y/N] "]
    assert mqadmin._may_go_on(command, CommandLine({"yes": ""}))
    assert mqadmin._may_go_on(find_sub_command("topicList"), CommandLine({}))
    assert len(asked) == 1


def test_scripts_are_not_asked():
    assert mqadmin._may_go_on(find_sub_command("deleteTopic"), CommandLine({}))


def test_an_unknown_subcommand_says_so_as_apaches_does(capsys):
    assert (mqadmin.run(["nosuch"]), mqadmin.run(["help", "nosuch"])) == (1, 1)
    assert capsys.readouterr().out == "The sub command nosuch not exist.\n" * 2


def test_wrong_usage_prints_the_reason_and_the_help(capsys):
    assert mqadmin.run(["topicRoute"]) == 1
    printed = capsys.readouterr()
    assert printed.err == "Missing required option: t\n"
    assert printed.out.startswith("usage: mqadmin topicRoute [-h] [--json] [-l] [-n <arg>] -t <arg>\n")


def test_without_a_name_server_the_next_step_is_named(capsys, no_name_server):
    assert mqadmin.run(["topicList"]) == 1
    assert capsys.readouterr().err == (
        "mqadmin topicList: no name server is given; add -n host:port or set NAMESRV_ADDR; `mq up` starts one\n"
    )


def test_name_servers_come_from_the_option_before_the_environment(monkeypatch):
    monkeypatch.setenv("NAMESRV_ADDR", "env:1")
    assert mqadmin.name_servers(CommandLine({})).addresses == ["env:1"]
    assert mqadmin.name_servers(CommandLine({"n": "a:1; b:2;"})).addresses == ["a:1", "b:2"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            BrokerError(17, "No topic route\nSee https://rocketmq.apache.org"),
            "CODE: 17 DESC: No topic route; `mqadmin topicList` lists the topics",
        ),
        (BrokerError(1, "two\nlines"), "CODE: 1 DESC: two lines"),
        (
            RemotingTimeoutError("no answer from a:1"),
            "no answer from a:1; `mqadmin clusterList` lists the running brokers",
        ),
        (ClientError("no route of T"), "no route of T"),
        (
            CliError("no name server answers at a:1", "start one with `mq up`"),
            "no name server answers at a:1; start one with `mq up`",
        ),
    ],
)
def test_a_failure_is_one_line_and_exit_code_1(monkeypatch, capsys, error, text):
    def fail(main):
        raise error

    monkeypatch.setattr(mqadmin, "run_under_reactor", fail)
    assert mqadmin.run(["topicList", "-n", "a:1"]) == 1
    assert capsys.readouterr() == ("", f"mqadmin topicList: {text}\n")


def test_interruption_has_the_exit_code_of_shells(monkeypatch):
    def interrupt(main):
        raise mqadmin.Interrupted

    monkeypatch.setattr(mqadmin, "run_under_reactor", interrupt)
    assert mqadmin.run(["topicList", "-n", "a:1"]) == 130


def test_a_defect_keeps_its_traceback(monkeypatch):
    def fail(main):
        raise defer.AlreadyCalledError

    monkeypatch.setattr(mqadmin, "run_under_reactor", fail)
    with pytest.raises(defer.AlreadyCalledError):
        mqadmin.run(["topicList", "-n", "a:1"])


def test_a_name_that_is_no_text_is_printed_with_escapes():
    done = subprocess.run(
        [sys.executable, "-c", "from twisted_mq.cli.mqadmin import main; main()", b"\xff"], capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"The sub command \\udcff not exist.\n", b"")


def test_what_comes_from_servers_moves_no_cursor_of_a_terminal(capsys):
    assert harmless("\x1b]0;title\x07 \x9b2J ok\n\tnext") == "\\x1b]0;title\\x07 \\x9b2J ok\n\tnext"
    report("mqadmin topicList", "remark \x1b[2J")
    assert capsys.readouterr().err == "mqadmin topicList: remark \\x1b[2J\n"


def test_the_client_library_is_loaded_by_subcommands_that_need_it_alone():
    """Loading it would take a third of the time of a command."""
    program = "import sys, twisted_mq.cli.mqadmin; sys.exit('twisted_mq.client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
