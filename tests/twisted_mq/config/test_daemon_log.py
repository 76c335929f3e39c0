"""The file of twistd's log, its size, and a failure to open it again."""

from __future__ import annotations

import pytest
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.config import daemon_log


@pytest.mark.parametrize(
    ("twistd", "path"),
    [
        ({}, "twistd.log"),
        ({"logfile": "it.log"}, "it.log"),
        ({"logfile": "it.log", "nodaemon": 1}, "it.log"),
        ({"logfile": None, "nodaemon": 1}, None),
        ({"logfile": "-"}, None),
        ({"logfile": "it.log", "syslog": 1}, None),
        ({"logfile": "it.log", "logger": "a.b"}, None),
    ],
)
def test_log_goes_where_twistd_would_have_it(twistd, path):
    assert daemon_log.log_path(twistd) == path


def test_log_of_bounded_size_drops_its_oldest_part(tmp_path, monkeypatch):
    monkeypatch.setattr(daemon_log, "FILE_BYTES", 10)
    monkeypatch.setattr(daemon_log, "ROTATED_FILES", 3)
    log = daemon_log.daemon_log(str(tmp_path / "it.log"))
    for number in range(9):
        log.write(f"{number} a line\n")
    log.close()
    found = {one.name: one.read_text() for one in tmp_path.iterdir()}
    assert found == {
        "it.log": "8 a line\n",
        "it.log.1": "6 a line\n7 a line\n",
        "it.log.2": "4 a line\n5 a line\n",
        "it.log.3": "2 a line\n3 a line\n",
    }


def test_log_goes_on_in_the_file_before_where_no_new_one_can_be_opened(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    log = daemon_log.daemon_log(str(folder / "it.log"))
    log.write("before\n")
    folder.rename(tmp_path / "moved")
    with capturedLogs() as events:
        log.reopen()
    log.write("after\n")
    log.close()
    assert (tmp_path / "moved" / "it.log").read_text() == "before\nafter\n"
    said = f"log file not reopened, logging continues in the old one: [Errno 2] No such file or directory: '{folder}/it.log'"
    assert [formatEvent(one) for one in events] == [said]
