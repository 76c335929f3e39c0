"""Names and errors of files that subcommands write and read."""

import os
from pathlib import Path

import pytest

from twisted_mq.cli.admin.files import file_name, read_list, write_file, write_private_file
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import TopicConfig


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("10.0.0.1@7#12", "10.0.0.1@7#12"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("/etc/passwd", "_etc_passwd"),
        ("a\0b", "a_b"),
        ("..", "_"),
        ("", "_"),
        ("x" * 300, "x" * 200),
    ],
)
def test_what_a_client_chose_stays_in_the_folder(text, name):
    assert file_name(text) == name


def test_a_private_file_is_its_owners_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = write_private_file("../id", b"body")
    assert (Path(path).read_bytes(), os.stat(os.path.dirname(path)).st_mode & 0o777) == (b"body", 0o700)
    assert os.path.dirname(os.path.dirname(path)) == str(tmp_path)


def test_what_the_system_refuses_is_named(tmp_path):
    (tmp_path / "file").write_text("[]")
    with pytest.raises(CliError, match=r"Not a directory|File exists"):
        write_file(str(tmp_path / "file"), "name", b"")
    with pytest.raises(CliError, match="an empty list"):
        read_list(TopicConfig, str(tmp_path / "file"))
    (tmp_path / "file").write_text("{")
    with pytest.raises(CliError, match="no JSON"):
        read_list(TopicConfig, str(tmp_path / "file"))
