"""Properties files: entries with their lines, damage, and updates that keep the rest of a file."""

from __future__ import annotations

import pytest

from twisted_mq.config.errors import ConfigError
from twisted_mq.config.properties import (
    MAX_FILE_BYTES,
    Entry,
    parse_properties,
    parse_request,
    read_properties,
    update_properties,
)


def test_entries_carry_the_line_they_begin_on():
    data = b"# comment\n\nbrokerName = broker-a\nnamesrvAddr=a:1;\\\n    b:2\n! other comment\nbrokerId:0\n"
    assert parse_properties(data) == [
        Entry("brokerName", "broker-a", 3),
        Entry("namesrvAddr", "a:1;b:2", 4),
        Entry("brokerId", "0", 7),
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["unix", "windows", "mac"])
def test_every_kind_of_line_end_counts_one_line(end):
    assert parse_properties(end.join([b"#x", b"a=1", b"", b"b=2"])) == [Entry("a", "1", 2), Entry("b", "2", 4)]


def test_escapes_and_latin_1_are_read_as_java_reads_them():
    assert parse_properties(b"a=\\u4f60\\t\\:\nb=caf\xe9\n") == [Entry("a", "你\t:", 1), Entry("b", "café", 2)]


def test_licence_as_xml_comment_is_passed_over():
    data = b"<!--\n  Licensed to = someone\n  -->\n\nlistenPort = 9876\n<!-- one line -->\na=b\n"
    assert parse_properties(data) == [Entry("listenPort", "9876", 5), Entry("a", "b", 7)]


def test_broken_escape_names_its_line():
    with pytest.raises(ConfigError) as caught:
        parse_properties(b"a=1\nb=\\u12zz\n", "broker.conf")
    assert str(caught.value).startswith("broker.conf line 2: ")
    assert "u12zz" in str(caught.value)


def test_missing_file_is_named(tmp_path):
    path = str(tmp_path / "none.conf")
    with pytest.raises(ConfigError) as caught:
        read_properties(path)
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"


def test_huge_file_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "store.data"
    with open(path, "wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ConfigError, match="is larger than 4194304 bytes"):
        read_properties(str(path))


def test_update_changes_only_its_keys(tmp_path):
    path = tmp_path / "namesrv.conf"
    path.write_bytes(b"# mine\nlistenPort = 0\n\nenableTopicList = true\nenableTopicList=true")
    update_properties(str(path), {"enableTopicList": "false", "waitSecondsForService": "3"})
    assert path.read_bytes() == b"# mine\nlistenPort = 0\n\nenableTopicList=false\nwaitSecondsForService=3\n"
    assert [one.name for one in tmp_path.iterdir()] == ["namesrv.conf"]


def test_update_makes_a_missing_file(tmp_path):
    path = tmp_path / "deep" / "namesrv.conf"
    update_properties(str(path), {"a": "x y"})
    assert read_properties(str(path)) == [Entry("a", "x y", 1)]


@pytest.mark.parametrize("data", [b"a=b\n" * 1001, b"\r" * 1001, b"a" * (64 * 1024 + 1)])
def test_a_request_of_too_many_settings_is_refused_unread(data: bytes) -> None:
    with pytest.raises(ConfigError, match="the limit is"):
        parse_request(data)
    assert [entry.key for entry in parse_request(data[:1000])][:1] in ([], ["a"], ["a" * 1000])
