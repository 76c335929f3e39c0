"""Stores of a path, and files of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from twisted_mq.spark.errors import NoCommitLog, NoFileSystem, WrongOption
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.source.stores import Store, list_log_files, stores_named


def test_files_are_listed_in_order_and_others_are_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    log.mkdir()
    for name, content in (("00000000000000000100", b"x" * 100), ("00000000000000000000", b"y"), ("notes.txt", b"z")):
        (log / name).write_bytes(content)
    (log / "00000000000000000200").write_bytes(b"")
    expected = [
        (str(log / "00000000000000000000"), 0, 1),
        (str(log / "00000000000000000100"), 100, 100),
    ]
    for path in (tmp_path, log):
        assert [(file.path, file.first_offset, file.size) for file in list_log_files(Store(str(path)))] == expected


@pytest.mark.parametrize(("made", "reason"), [([], "no such directory"), (["store"], "holds no commitlog directory")])
def test_a_path_that_is_no_store_says_what_to_give(tmp_path: Path, made: list[str], reason: str) -> None:
    for name in made:
        (tmp_path / name).mkdir()
    path = str(tmp_path / "store")
    with pytest.raises(NoCommitLog) as raised:
        list_log_files(Store(path))
    assert str(raised.value) == (
        f"{path}: {reason}; use the directory that contains commitlog/ (storePathRootDir), or commitlog/ itself"
    )


def uris(*paths: str) -> list[str]:
    return [store.uri for store in stores_named(paths)]


def test_patterns_name_the_directories_that_are_there(tmp_path: Path) -> None:
    for name in ("broker-a", "broker-b", "broker-c1"):
        (tmp_path / name / "store").mkdir(parents=True)
    (tmp_path / "broker-d").write_text("no directory")
    root = str(tmp_path)
    assert uris(f"{root}/broker-?/store") == [f"{root}/broker-{name}/store" for name in "ab"]
    assert uris(f"{root}/broker-[bc]*/s*", f"{root}/broker-a/store") == [
        f"{root}/{name}/store" for name in ("broker-b", "broker-c1", "broker-a")
    ]
    with pytest.raises(NoCommitLog, match="no directory matches"):
        uris(f"{root}/nothing-*/store")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/data/store", "/data/store"),
        ("file:/data/store", "/data/store"),
        ("file:///data/a%20store", "/data/a store"),
        ("s3a://bucket/store?scheme=http", "s3a://bucket/store?scheme=http"),
    ],
)
def test_file_uris_are_paths(given: str, path: str) -> None:
    assert uris(given) == [path]


def test_names_of_stores_hold_no_secret() -> None:
    uri = "s3a://KEY:SECRET@bucket/store?endpoint_override=127.0.0.1:9000&scheme=http"
    assert Store(uri).name == "s3a://bucket/store"
    assert Store("/data/store?").name == "/data/store?"


def test_brokers_have_names_one_by_one() -> None:
    assert stores_named(["/a", "/b"], ["broker-a", "broker-b"]) == (Store("/a", "broker-a"), Store("/b", "broker-b"))
    with pytest.raises(WrongOption, match="2 stores are read, each needs a name"):
        stores_named(["/a", "/b"], ["broker-a"])


def test_files_of_a_store_whose_parent_is_relative(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.append()
    path = Path(writer.write())
    monkeypatch.chdir(path.parent)
    assert stores_named([path.name]) == (Store(str(path)),)
    assert list_log_files(Store(path.name)) == list_log_files(Store(str(path)))


def test_hdfs_without_a_library_says_in_one_line_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twisted_mq.spark.file_systems.importlib.util.find_spec", lambda name: None)
    with pytest.raises(NoFileSystem, match=r"^hdfs://127.0.0.1:1/store: install hdfs-native, or .*: [^\n]*$"):
        locate("hdfs://127.0.0.1:1/store")
