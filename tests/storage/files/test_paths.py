"""Names on disk, and names that must not get there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.storage.errors import IllegalTopicName
from twisted_mq.storage.files.paths import StorePaths, checked_topic, file_name, file_offset, is_topic_name, queue_id_of


@pytest.mark.parametrize("topic", ["TopicA", "%RETRY%group_1", "a|b-c_d%", "T" * 255, "0"])
def test_apaches_characters_are_allowed(topic: str) -> None:
    assert checked_topic(topic) == topic


@pytest.mark.parametrize(
    "topic", ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", "a b", "a.b", "a\n", "ü", "T" * 256, "٣"], ids=repr
)
def test_other_names_are_refused(topic: str) -> None:
    with pytest.raises(IllegalTopicName) as caught:
        checked_topic(topic)
    assert caught.value.topic == topic


@given(st.text(max_size=300))
def test_no_name_leads_out_of_the_store(topic: str) -> None:
    if is_topic_name(topic):
        path = StorePaths("/root").queue(topic, 0)
        assert str(Path(path).parent.parent) == "/root/consumequeue"


@given(st.integers(0, 10**20 - 1))
def test_file_names_and_offsets(offset: int) -> None:
    assert file_offset(file_name(offset)) == offset


@pytest.mark.parametrize(
    "name", ["", "0", "0" * 19, "0" * 21, "0" * 19 + "a", "-" + "0" * 19, "٠" * 20, "0" * 20 + "\n"]
)
def test_other_files_have_no_offset(name: str) -> None:
    assert file_offset(name) is None


@pytest.mark.parametrize(
    ("name", "queue_id"),
    [("0", 0), ("17", 17), ("2147483647", 2147483647), ("2147483648", None), ("01", None), ("-1", None), ("x", None)],
)
def test_queue_directories(name: str, queue_id: int | None) -> None:
    assert queue_id_of(name) == queue_id


def test_paths_are_apaches() -> None:
    paths = StorePaths("/root")
    assert (paths.commit_log, paths.checkpoint, paths.abort, paths.lock, paths.config) == (
        "/root/commitlog",
        "/root/checkpoint",
        "/root/abort",
        "/root/lock",
        "/root/config",
    )
    assert paths.queue("TopicA", 3) == "/root/consumequeue/TopicA/3"
    assert StorePaths("/root", "/other").commit_log == "/other"
    with pytest.raises(ValueError, match="queue id -1 is negative"):
        paths.queue("TopicA", -1)


def test_queues_on_disk_are_listed(tmp_path: Path) -> None:
    assert StorePaths(str(tmp_path)).queue_directories() == []
    for name in ("B/1", "A/10", "A/2", "A/x", "a b/0", "%DLQ%g/0"):
        (tmp_path / "consumequeue" / name).mkdir(parents=True)
    (tmp_path / "consumequeue" / "file").write_bytes(b"")
    (tmp_path / "consumequeue" / "link").symlink_to(tmp_path / "consumequeue" / "A")
    assert StorePaths(str(tmp_path)).queue_directories() == [("%DLQ%g", 0), ("A", 2), ("A", 10), ("B", 1)]


def test_foreign_directories_do_not_disturb_a_start(tmp_path: Path) -> None:
    (tmp_path / "consumequeue_ext" / "A" / "0").mkdir(parents=True)
    (tmp_path / "batchconsumequeue" / "A" / "0").mkdir(parents=True)
    assert StorePaths(str(tmp_path)).queue_directories() == []
