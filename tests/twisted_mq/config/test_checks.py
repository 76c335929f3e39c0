"""Configuration files looked at line by line, and files to begin with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.mq import mq
from twisted_mq.config.checks import LineCheck, check_file
from twisted_mq.config.findings import Effect
from twisted_mq.config.options import load_options, option_fields
from twisted_mq.config.template import FIRST_KEYS, SET, template
from twisted_mq.namesrv.options import NamesrvOptions

FILE = """# mine
listenPort=10911
listenPort=ten
brokerNmae=a
fileReservedTime=48
fileReservedTime=72
osPageCacheBusyTimeOutMills=1000
highSpeedMode=true
enableControllerMode=true
initAuthenticationUser=planted
tls.ciphers=x
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "broker.conf").write_text(FILE)
    return str(tmp_path / "broker.conf")


def test_each_line_with_its_effect(path: str) -> None:
    found = check_file(BrokerOptions, path)
    assert [(one.line, one.key, one.effect) for one in found] == [
        (2, "listenPort", Effect.OVERRIDDEN),
        (3, "listenPort", Effect.WRONG),
        (4, "brokerNmae", Effect.UNKNOWN),
        (5, "fileReservedTime", Effect.OVERRIDDEN),
        (6, "fileReservedTime", Effect.USED),
        (7, "osPageCacheBusyTimeOutMills", Effect.NO_EFFECT),
        (8, "highSpeedMode", Effect.NO_EFFECT),
        (9, "enableControllerMode", Effect.NOT_SERVED),
        (10, "initAuthenticationUser", Effect.USED),
        (11, "tls.ciphers", Effect.NO_EFFECT),
    ]
    remarks = [one.remark for one in found]
    assert remarks[1:3] == ["ten: must be a whole number", "unknown key, did you mean brokerName?"]
    assert remarks[3] == "line 6 is used"
    assert remarks[5] == "no effect here: one thread appends: there is no choice of lock"
    assert remarks[6] == "no effect here: version 5.3.3 does not read it"
    assert "no other broker would take over" in remarks[7]
    assert not any("planted" in remark for remark in remarks)


def test_a_secret_of_a_wrong_form_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "b.conf"
    path.write_text("haSharedSecret=planted\nlistenPort=1\n")
    assert check_file(BrokerOptions, str(path))[0] == LineCheck(
        1, "haSharedSecret", Effect.USED, "secret that master and slave share; unset: none; ours"
    )


def test_the_command_names_what_is_not_well_and_fails(path: str) -> None:
    done = CliRunner().invoke(mq, ["config", "check", path])
    assert isinstance(done.exception, CliError)
    assert str(done.exception) == f"{path}: 2 of 10 keys prevent the start; correct or remove them"
    assert done.output.splitlines()[1] == "2\tlistenPort\toverridden\tline 3 is used"
    lines = CliRunner().invoke(mq, ["config", "check", path, "--json"]).output.splitlines()
    assert len(lines) == 10 and json.loads(lines[4])["effect"] == "used"


@pytest.mark.parametrize(("daemon", "cls"), [("broker", BrokerOptions), ("namesrv", NamesrvOptions)])
@pytest.mark.parametrize("words", [[], ["--all"]])
def test_a_file_to_begin_with_is_well_and_changes_only_the_address(
    tmp_path: Path, daemon: str, cls: type, words: list[str]
) -> None:
    path = str(tmp_path / "new.conf")
    assert CliRunner().invoke(mq, ["config", "init", "--daemon", daemon, path, *words]).exit_code == 0
    assert [(one.key, one.effect) for one in check_file(cls, path)] == [("bindAddress", Effect.USED)]
    made, defaults = load_options(cls, path), cls()
    assert made.bind_address == "127.0.0.1"
    made.bind_address = defaults.bind_address
    assert made == defaults
    again = CliRunner().invoke(mq, ["config", "init", "--daemon", daemon, path])
    assert str(again.exception) == f"{path} already exists; add --force to replace it"
    assert CliRunner().invoke(mq, ["config", "init", path, "--force"]).exit_code == 0


def test_defaults_behind_the_marks_are_values_that_their_keys_take(tmp_path: Path) -> None:
    text = template(BrokerOptions, None)
    path = tmp_path / "all.conf"
    keys = [line for line in text.splitlines() if line.startswith("#") and not line.startswith(("# ", "#  "))]
    path.write_text("\n".join(line[1:] for line in keys if not line.endswith("=")))
    assert {one.effect for one in check_file(BrokerOptions, str(path))} == {Effect.USED}


def test_keys_of_the_template_are_keys() -> None:
    known = {*option_fields(BrokerOptions), *option_fields(NamesrvOptions)}
    assert set(FIRST_KEYS) | set(SET) <= known
