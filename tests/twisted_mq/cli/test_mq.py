"""The group `mq`: help, lazy loading, and one line for every failure."""

import subprocess
import sys
from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner

from twisted_mq.cli import mq as mq_module
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.mq import COMMANDS, main, mq
from twisted_mq.client.core.errors import NameServerUnreachable
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.remoting.listen import PortError
from twisted_mq.storage.errors import StoreLocked


def run_main(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["mq", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def failing_with(monkeypatch, error: BaseException) -> None:
    def fail(**arguments):
        raise error

    monkeypatch.setattr(mq_module.mq, "main", fail)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name):
    result = CliRunner().invoke(mq, [name, "--help"] if name != "admin" else [name])
    assert result.exit_code == 0
    assert "Example" in result.output or "example" in result.output


def test_the_help_lists_all_commands():
    result = CliRunner().invoke(mq, ["--help"])
    listed = result.output.split("Commands:\n")[1]
    names = [line.split()[0] for line in listed.splitlines() if line[2:3].strip()]  # other lines go on with a text
    assert names == list(COMMANDS)


def test_help_loads_no_reactor_and_nothing_heavy():
    script = (
        "import sys; sys.argv = ['mq', '--help']\n"
        "from twisted_mq.cli.mq import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        f"print([name for name in {('twisted', 'numpy', 'construct', 'rich')!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("arguments", [[], ["store"]])
def test_a_group_without_a_command_prints_its_help(monkeypatch, capsys, arguments):
    assert run_main(monkeypatch, *arguments) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"Usage: {' '.join(['mq', *arguments])} [OPTIONS] COMMAND [ARGS]...\n")
    assert (printed.out.count("\n") > 10, printed.err) == (True, "")


def test_the_version_is_one_line(monkeypatch, capsys):
    assert run_main(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"mq {version('rocketmq-twisted')}, compatible with Apache RocketMQ 5.3.3\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nosuch"], "mq: No such command 'nosuch'; see `mq --help`\n"),
        (["send"], "mq: Missing argument 'TOPIC'; see `mq send --help`\n"),
        (["consume", "T"], "mq: Missing option '--group'; see `mq consume --help`\n"),
        (["store", "dump"], "mq: Missing argument 'DIRECTORY'; see `mq store dump --help`\n"),
        (["up", "--store", "x", "--temporary"], "mq: --temporary and --store cannot be combined; see `mq up --help`\n"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_help(monkeypatch, capsys, arguments, text):
    assert run_main(monkeypatch, *arguments) == 1
    assert capsys.readouterr().err == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (CliError("two\nlines", "do this"), "mq: two lines; do this\n"),
        (BrokerError(17, "no topic\nsee FAQ"), "mq: CODE: 17 DESC: no topic see FAQ\n"),
        (PortError("port 1 is busy"), "mq: port 1 is busy\n"),
        (click.FileError("x", "gone"), "mq: Could not open file 'x': gone\n"),
        (FileNotFoundError(2, "No such file", "x"), "mq: [Errno 2] No such file: 'x'\n"),
    ],
)
def test_an_expected_failure_is_one_line(monkeypatch, capsys, error, text):
    failing_with(monkeypatch, error)
    assert run_main(monkeypatch) == 1
    assert capsys.readouterr().err == text


@pytest.mark.parametrize("error", [StoreLocked("/x"), NameServerUnreachable({"a:1": "refused"})])
def test_errors_of_store_and_client_keep_their_advice(monkeypatch, capsys, error):
    failing_with(monkeypatch, error)
    assert run_main(monkeypatch) == 1
    assert capsys.readouterr().err == f"mq: {error}\n"


def test_a_defect_keeps_its_traceback(monkeypatch):
    failing_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        run_main(monkeypatch)


@pytest.mark.parametrize("error", [click.Abort(), KeyboardInterrupt()])
def test_interruption_has_the_exit_code_of_shells(monkeypatch, error):
    failing_with(monkeypatch, error)
    assert run_main(monkeypatch) == 130


def test_a_closed_pipe_ends_without_a_word(tmp_path):
    path = tmp_path / "many.frames"
    path.write_bytes(b'\0\0\0\x10\0\0\0\x0c{"code":105}' * 5000)
    command = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()", "frames", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (1, b"")
