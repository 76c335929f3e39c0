"""Completion scripts, run by the shells themselves where they are there."""

import subprocess

import pytest

from twisted_mq.cli import mqadmin
from twisted_mq.cli.admin.completion import SHELLS, bash, fish
from twisted_mq.cli.admin.registry import served


def completed(words):
    """Return the completions of bash for the last word of a line."""
    line = " ".join(f"'{word}'" for word in words)
    script = f'{bash()}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _mqadmin; echo "${{COMPREPLY[*]}}"'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["mqadmin", "topicR"], ["topicRoute"]),
        (["mqadmin", "help", "clusterL"], ["clusterList"]),
        (["mqadmin", "topicRoute", "--"], ["--help", "--namesrvAddr", "--topic", "--list", "--json"]),
        (["mqadmin", "nosuch", "-"], []),
    ],
    ids=lambda value: " ".join(value),
)
def test_bash_completes_subcommands_and_their_options(words, offered):
    assert completed(words) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_is_told_every_subcommand(shell, capsys):
    assert mqadmin.run(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert [command.name for command in served() if command.name not in printed] == []


def test_fish_names_what_an_option_takes():
    wanted = "-n '__fish_seen_subcommand_from topicRoute' -s t -l topic -r -d 'name of the topic'"
    assert f"complete -c mqadmin {wanted}" in fish().splitlines()


def test_an_unknown_shell_is_refused(capsys):
    assert mqadmin.run(["completion", "tcsh"]) == 1
    assert capsys.readouterr() == ("", "usage: mqadmin completion bash|zsh|fish\n")
