"""Another content for a small file: mode, owner and links stay."""

from __future__ import annotations

import os
import stat

import pytest

from twisted_mq.storage.files import replace_file as module
from twisted_mq.storage.files.replace_file import replace_file


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("before", [0o600, 0o640, 0o664])
def test_mode_stays(tmp_path, before):
    path = tmp_path / "broker.conf"
    path.write_bytes(b"old")
    path.chmod(before)
    replace_file(str(path), b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", before)
    assert os.listdir(tmp_path) == ["broker.conf"]


def test_new_file_is_not_the_worlds(tmp_path):
    replace_file(str(tmp_path / "deep" / "file"), b"new")
    assert mode(tmp_path / "deep" / "file") & 0o027 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owner_stays(tmp_path):
    path = tmp_path / "broker.conf"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    path.chmod(0o600)
    replace_file(str(path), b"new")
    now = path.stat()
    assert (now.st_uid, now.st_gid, mode(path)) == (12345, 54321, 0o600)


def test_where_the_owner_cannot_stay_nothing_changes(tmp_path, monkeypatch):
    path = tmp_path / "broker.conf"
    path.write_bytes(b"old")
    real = os.fstat

    def of_another(descriptor):
        fields = list(real(descriptor))
        fields[stat.ST_UID] += 1
        return os.stat_result(fields)

    def refused(descriptor, user, group):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fstat", of_another)
    monkeypatch.setattr(os, "fchown", refused)
    with pytest.raises(PermissionError):
        replace_file(str(path), b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["broker.conf"])


def test_link_leads_where_it_did(tmp_path):
    (tmp_path / "real").mkdir()
    path, link = tmp_path / "real" / "broker.conf", tmp_path / "broker.conf"
    path.write_bytes(b"old")
    link.symlink_to(path)
    replace_file(str(link), b"new")
    assert (link.is_symlink(), path.read_bytes(), os.listdir(path.parent)) == (True, b"new", ["broker.conf"])


def test_what_is_left_of_a_killed_write_is_not_followed(tmp_path):
    path, other = tmp_path / "broker.conf", tmp_path / "other"
    other.write_bytes(b"mine")
    (tmp_path / "broker.conf.tmp").symlink_to(other)
    replace_file(str(path), b"new")
    assert (path.read_bytes(), other.read_bytes()) == (b"new", b"mine")


def test_bytes_are_on_disk_before_the_name_and_the_name_before_the_end(tmp_path, monkeypatch):
    """A power cut leaves the one content or the other, and the new one once the call is over."""
    path, done = tmp_path / "broker.conf", []
    replace = os.replace

    def note_replace(old, new):
        done.append(("rename", os.path.basename(new)))
        replace(old, new)

    def synced(descriptor):
        done.append(("sync", os.fstat(descriptor).st_size))

    monkeypatch.setattr(os, "replace", note_replace)
    monkeypatch.setattr(module, "fsync", synced)
    monkeypatch.setattr(module, "sync_directory", lambda folder: done.append(("sync", folder)))
    replace_file(str(path), b"new")
    assert done == [("sync", 3), ("rename", "broker.conf"), ("sync", str(tmp_path))]
