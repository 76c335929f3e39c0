"""Tables of the broker: Apache's files read, ours written, backups used."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import attrs
import pytest

from twisted_mq.protocol.bodies import (
    DataVersion,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from twisted_mq.protocol.bodies.codec import to_value
from twisted_mq.storage.files.json_file import LoadAction
from twisted_mq.storage.tables import config_tables
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable, SubscriptionGroupTable, TopicTable, pretty

CAPTURES = Path(__file__).parents[3] / "interop" / "captures" / "store"
LONG_GROUP = (
    "CG_retry_with_a_long_name_so_that_its_retry_topic_is_longer_than_127_characters_and_the_record_uses_the_second_"
    "magic_code_0123456789"
)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("captured")
    with tarfile.open(CAPTURES / "st.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root / "st" / "config"


def filled(path: Path) -> TopicTable:
    table = TopicTable(str(path))
    table.topics["TopicA"] = TopicConfig("TopicA", 4, 8)
    table.data_version = DataVersion(0, 1_700_000_000_000, 3)
    table.save()
    return table


def test_apaches_topics_are_read(captured: Path) -> None:
    table = TopicTable(str(captured / "topics.json"))
    assert table.load() == []
    assert table.data_version == DataVersion(0, 1795216968628, 15)
    assert len(table.topics) == 28
    assert table.topics["CapBatch"] == TopicConfig("CapBatch", 2, 2)
    assert table.topics["SCHEDULE_TOPIC_XXXX"] == TopicConfig("SCHEDULE_TOPIC_XXXX", 18, 18)


def test_apaches_groups_are_read(captured: Path) -> None:
    table = SubscriptionGroupTable(str(captured / "subscriptionGroup.json"))
    assert table.load() == []
    assert (table.data_version.counter, table.forbidden) == (4, {})
    assert table.groups["CG_push"] == SubscriptionGroupConfig("CG_push")


def test_apaches_offsets_are_read(captured: Path) -> None:
    table = ConsumerOffsetTable(str(captured / "consumerOffset.json"))
    assert table.load() == []
    assert table.offsets["CapPush@CG_push"] == {0: 8, 1: 8}
    assert table.offsets[f"%RETRY%{LONG_GROUP}@{LONG_GROUP}"] == {0: 6}
    assert len(table.offsets) == 8


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TopicTable, "topics"), (SubscriptionGroupTable, "subscriptionGroup"), (ConsumerOffsetTable, "consumerOffset")],
    ids=["topics", "groups", "offsets"],
)
def test_what_is_saved_is_what_is_read(captured: Path, tmp_path: Path, kind: Any, name: str) -> None:
    table = kind(str(tmp_path / "t.json"))
    source = kind(str(captured / f"{name}.json"))
    source.load()
    for attribute in ("topics", "groups", "forbidden", "offsets", "data_version"):
        if hasattr(source, attribute):
            setattr(table, attribute, getattr(source, attribute))
    assert table.save()
    again = kind(str(tmp_path / "t.json"))
    assert again.load() == []
    assert {key: value for key, value in vars(again).items() if key not in ("path", "_file", "_rows")} == {
        key: value for key, value in vars(table).items() if key not in ("path", "_file", "_rows")
    }


def test_offsets_are_written_in_apaches_form(tmp_path: Path) -> None:
    table = ConsumerOffsetTable(str(tmp_path / "consumerOffset.json"))
    table.offsets = {"TopicA@GroupA": {1: 8, 0: 7}}
    table.save()
    assert (tmp_path / "consumerOffset.json").read_bytes() == (
        b'{\n\t"dataVersion":{\n\t\t"counter":0,\n\t\t"stateVersion":0,\n\t\t"timestamp":0\n\t},'
        b'\n\t"groupTopicMap":{\n\t\t"GroupA":["TopicA"]\n\t},'
        b'\n\t"offsetTable":{\n\t\t"TopicA@GroupA":{0:7,1:8}\n\t}\n}'
    )


def test_only_rows_that_changed_are_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic more costs a broker with very many of them what one topic costs."""
    path = tmp_path / "topics.json"
    table = filled(path)
    table.topics |= {name: TopicConfig(name, 4, 8) for name in "BCD"}
    table.save()
    table.topics["B"] = TopicConfig("B", 1, 1)
    table.topics["E"] = TopicConfig("E")
    del table.topics["C"]
    encoded: list[object] = []
    monkeypatch.setattr(config_tables, "to_value", lambda body: encoded.append(body) or to_value(body))
    write = table.snapshot()
    table.topics.clear()
    assert write()
    assert encoded == [TopicConfig("B", 1, 1), TopicConfig("E"), table.data_version]
    again = TopicTable(str(path))
    assert (again.load(), list(again.topics)) == ([], ["TopicA", "B", "D", "E"])
    assert again.topics["B"] == TopicConfig("B", 1, 1)


def test_groups_are_written_in_apaches_form(tmp_path: Path) -> None:
    table = SubscriptionGroupTable(str(tmp_path / "subscriptionGroup.json"))
    table.groups = {name: SubscriptionGroupConfig(name) for name in ("G2", "G1")}
    table.forbidden = {"G1": {"T": 4}}
    table.save()
    wrapper = SubscriptionGroupWrapper(table.groups, table.data_version, table.forbidden)
    assert (tmp_path / "subscriptionGroup.json").read_bytes() == pretty(to_value(wrapper))


@pytest.mark.parametrize("names", ["", "A", "BA"], ids=len)
def test_topics_are_written_in_apaches_form(tmp_path: Path, names: str) -> None:
    table = TopicTable(str(tmp_path / "topics.json"))
    table.topics |= {name: TopicConfig(name, attributes={"message.type": "FIFO"}) for name in names}
    table.save()
    wrapper = TopicConfigSerializeWrapper(dict(table.topics), table.data_version)
    assert (tmp_path / "topics.json").read_bytes() == pretty(to_value(wrapper))


def test_quoted_queue_ids_are_read(tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text('{"offsetTable":{"TopicA@GroupA":{"0":7,"1":8}}}')
    table = ConsumerOffsetTable(str(tmp_path / "o.json"))
    assert table.load() == []
    assert table.offsets == {"TopicA@GroupA": {0: 7, 1: 8}}


def test_saving_keeps_the_previous_version_as_backup(tmp_path: Path) -> None:
    path = tmp_path / "config" / "topics.json"
    table = filled(path)
    first = path.read_bytes()
    assert not table.save()
    table.topics["TopicB"] = TopicConfig("TopicB")
    assert table.save()
    assert (path.with_name("topics.json.bak").read_bytes(), b"TopicB" in path.read_bytes()) == (first, True)
    assert sorted(found.name for found in path.parent.iterdir()) == ["topics.json", "topics.json.bak"]


def test_no_file_is_an_empty_table(tmp_path: Path) -> None:
    table = TopicTable(str(tmp_path / "topics.json"))
    assert (table.load(), table.topics, table.data_version) == ([], {}, DataVersion())


@pytest.mark.parametrize("content", [b"", b"{", b'{"topicConfigTable":[]}', b"\xff\xfe"], ids=repr)
def test_damaged_file_falls_back_to_its_backup(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "topics.json"
    table = filled(path)
    table.topics["TopicB"] = TopicConfig("TopicB")
    table.save()
    path.write_bytes(content)
    again = TopicTable(str(path))
    (action,) = again.load()
    assert (action.path, action.done) == (
        str(path),
        "its backup was read, the damaged file is kept as topics.json.damaged",
    )
    assert list(again.topics) == ["TopicA"]
    assert path.with_name("topics.json.damaged").read_bytes() == content


def test_backup_survives_the_save_after_a_fallback(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    table = filled(path)
    table.topics["TopicB"] = TopicConfig("TopicB")
    table.save()
    good = path.with_name("topics.json.bak").read_bytes()
    path.write_bytes(b"{")
    again = TopicTable(str(path))
    again.load()
    again.save()
    assert (path.read_bytes(), path.with_name("topics.json.bak").read_bytes()) == (good, good)


def test_missing_file_falls_back_to_its_backup(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    filled(path)
    path.rename(path.with_name("topics.json.bak"))
    again = TopicTable(str(path))
    assert again.load() == [LoadAction(str(path), "is missing", "its backup was read")]
    assert list(again.topics) == ["TopicA"]


def test_both_damaged_is_an_empty_table_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_bytes(b"{")
    path.with_name("topics.json.bak").write_bytes(b"[")
    (action,) = TopicTable(str(path)).load()
    assert action.done.startswith("its backup is damaged too (")
    assert action.done.endswith("the table starts empty, the damaged file is kept as topics.json.damaged")


def test_failed_save_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "topics.json"
    table = filled(path)
    before = path.read_bytes()
    table.topics["TopicB"] = TopicConfig("TopicB")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        table.save()
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert table.save()
    again = TopicTable(str(path))
    again.load()
    assert list(again.topics) == ["TopicA", "TopicB"]


def test_values_are_those_of_the_bodies(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    table = TopicTable(str(path))
    table.topics["TopicA"] = attrs.evolve(TopicConfig("TopicA"), attributes={"+message.type": "FIFO"}, order=True)
    table.save()
    again = TopicTable(str(path))
    again.load()
    assert again.topics == table.topics


def test_pretty_form_of_odd_values() -> None:
    assert pretty({}) == b"{}"
    assert pretty({'a"b': [1, None, "ü"], "c": {3: 1}}) == '{\n\t"a\\"b":[1,null,"ü"],\n\t"c":{3:1}\n}'.encode()


def test_offsets_are_written_while_groups_come_go_and_commit(tmp_path: Path) -> None:
    table = ConsumerOffsetTable(str(tmp_path / "consumerOffset.json"))
    table.offsets = {f"T@G{number}": {0: number} for number in range(3)}
    write = table.snapshot()
    table.offsets["T@G0"][0] = 100
    table.offsets["T@G1"][1] = 7
    table.offsets["T@New"] = {0: 1}
    del table.offsets["T@G2"]
    assert write()
    again = ConsumerOffsetTable(table.path)
    again.load()
    assert again.offsets == {"T@G0": {0: 100}, "T@G1": {0: 1, 1: 7}}
