"""Servers of a command: options, contexts, the environment; and `mq context`."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from twisted_mq.cli.contexts import Contexts, contexts_path, read_contexts, write_contexts
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.mq import mq
from twisted_mq.cli.servers import BY_NAME, HERE, SETTINGS, Servers, servers_of

SECRET = "planted-5d1e"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a user without settings."""
    for name in ("ROCKETMQ_HOME", "MQ_CONTEXT", *(setting.variable for setting in SETTINGS)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(mq, words, catch_exceptions=True)


def kept(home: Path) -> Contexts:
    return read_contexts(contexts_path(os.environ), BY_NAME)


def test_options_count_before_a_context_and_that_before_the_environment(home: Path) -> None:
    path = contexts_path({"XDG_CONFIG_HOME": str(home)})
    write_contexts(path, Contexts("prod", {"prod": {"namesrv": "p:1", "access-key": "ada", "tls": True}}))
    environ = {"XDG_CONFIG_HOME": str(home), "MQ_SECRET_KEY": SECRET, "MQ_ACCESS_KEY": "bob", "MQ_CONTEXT": "prod"}
    assert servers_of({}, None, environ) == Servers("p:1", "ada", SECRET, tls=True)
    assert servers_of({"namesrv": "q:1", "tls": False}, None, environ) == Servers("q:1", "ada", SECRET)


def test_the_context_in_use_counts_where_nothing_else_names_servers(home: Path) -> None:
    path = contexts_path({"XDG_CONFIG_HOME": str(home)})
    write_contexts(path, Contexts("prod", {"prod": {"namesrv": "p:1;p:2", "access-key": "ada", "secret-key": SECRET}}))
    environ = {"XDG_CONFIG_HOME": str(home)}
    found = servers_of({}, None, environ)
    assert found is not None and found.addresses == ["p:1", "p:2"] and SECRET not in repr(found)
    assert servers_of({}, None, {**environ, "NAMESRV_ADDR": "e:1"}) == Servers("e:1")
    assert servers_of({"namesrv": "o:1"}, None, environ) == Servers("o:1")
    named = servers_of({}, "prod", {**environ, "NAMESRV_ADDR": "e:1"})
    assert named is not None and named.namesrv == "p:1;p:2"


def test_nothing_names_a_server() -> None:
    assert servers_of({}) is None
    assert servers_of({"namesrv": " ; "}) is None


@pytest.mark.parametrize("half", [{"access_key": "ada"}, {"secret_key": SECRET}])
def test_half_an_account_is_refused_without_its_secret(half: dict[str, str]) -> None:
    with pytest.raises(CliError) as caught:
        Servers(**half).client_options()
    assert str(caught.value).startswith("an account needs both keys") and SECRET not in str(caught.value)


def test_an_account_from_a_file_and_encryption_by_its_files(home: Path) -> None:
    (home / "keys.yml").write_text(f"accessKey: ada\nsecretKey: {SECRET}\n")
    options = Servers(credentials=str(home / "keys.yml"), tls_ca="ca.pem").client_options()
    assert (options.access_key, options.secret_key, options.tls_enable) == ("ada", SECRET, True)
    (home / "keys.yml").write_text("accessKey: ada\n")
    with pytest.raises(CliError, match="has no accessKey with a secretKey"):
        Servers(credentials=str(home / "keys.yml")).client_options()


def test_contexts_are_added_used_shown_and_removed_and_nobody_sees_a_secret(home: Path) -> None:
    added = run("context", "add", "prod", "--namesrv", "p:1", "--access-key", "ada", "--secret-key", SECRET, "--tls")
    assert (added.exit_code, added.output) == (0, "context prod is saved and in use\n")
    assert run("context", "add", "test").output == "context test is saved; `mq context use test`\n"
    path = Path(contexts_path(os.environ))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert run("context", "list").output.splitlines() == [
        "inUse\tname\tnamesrv\taccount\ttls",
        "*\tprod\tp:1\tada\tyes",
        f"\ttest\t{HERE}\t\tno",
    ]
    shown = run("context", "show", "--json").output
    assert json.loads(shown) == {
        "name": "prod", "namesrv": "p:1", "access-key": "ada", "secret-key": "(secret)", "tls": True,
    }  # fmt: skip
    assert run("context", "use", "test").output == "context test is in use\n"
    assert run("context", "remove", "test").output == "context test is deleted\n"
    assert kept(home).in_use is None
    assert run("context", "use", "--none").exit_code == 0
    assert list(kept(home).by_name) == ["prod"]
    everything = [run("context", *words).output for words in (["list"], ["list", "--json"], ["show", "prod"])]
    assert all(SECRET not in text for text in everything)


def test_a_name_is_not_taken_twice_unless_it_is_meant(home: Path) -> None:
    run("context", "add", "prod", "--namesrv", "p:1")
    refused = run("context", "add", "prod", "--namesrv", "p:2")
    assert isinstance(refused.exception, CliError) and "add --replace to replace it" in str(refused.exception)
    assert run("context", "add", "prod", "--namesrv", "p:2", "--replace").exit_code == 0
    assert kept(home).by_name == {"prod": {"namesrv": "p:2"}}


def test_a_name_that_is_nearly_one_is_asked_for(home: Path) -> None:
    run("context", "add", "prod")
    failed = run("context", "use", "prdo")
    assert (
        str(failed.exception) == "context prdo does not exist; did you mean prod? `mq context list` shows all contexts"
    )


@pytest.mark.parametrize("text", ["{", '{"contexts":{"a":{"colour":"red"}}}', "[]"])
def test_a_damaged_file_is_named(home: Path, text: str) -> None:
    path = Path(contexts_path(os.environ))
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(CliError) as caught:
        read_contexts(str(path), BY_NAME)
    assert str(caught.value).startswith(f"{path}: ") and "correct" in str(caught.value)


def test_a_file_that_others_can_read_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = contexts_path(os.environ)
    write_contexts(path, Contexts())
    os.chmod(path, 0o644)
    read_contexts(path, BY_NAME)
    assert capsys.readouterr().err == f"mq: {path} can be read by other users; run chmod 600 on it\n"
    write_contexts(path, Contexts())
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize(
    ("typed", "meant"), [("pek", "peek"), ("consum", "consume"), ("contexts", "context"), ("bech", "bench")]
)
def test_a_command_that_is_nearly_one_is_asked_for(typed: str, meant: str) -> None:
    result = run(typed)
    assert result.exit_code == 2 and f"did you mean {meant}" in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_for_each_shell(shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0 and f"_MQ_COMPLETE={shell}_complete" in done.output


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("mq cont", "context"),
        ("mq peek --fr", "--from"),
        ("mq admin topicRo", "topicRoute"),
        ("mq store ver", "verify"),
    ],
)
def test_words_are_completed(monkeypatch: pytest.MonkeyPatch, words: str, found: str) -> None:
    environ = {"_MQ_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = CliRunner().invoke(mq, [], prog_name="mq", env=environ)
    assert f"plain,{found}" in done.output.splitlines()


def test_a_value_that_no_file_can_keep_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = str(tmp_path / "contexts.json")
    with pytest.raises(CliError, match="a value is not valid UTF-8"):
        write_contexts(path, Contexts("prod", {"prod": {"secret-key": "planted\udc80"}}))
    assert not os.path.exists(path)
