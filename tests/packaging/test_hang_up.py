"""SIGHUP at real processes: a log file is reopened, without one the servers stop cleanly; the size of logs."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.daemons import RunningDaemon, environment, run_twistd, wait_until
from tests.packaging.test_daemons import LOCAL

BROKER = ("mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "store", *LOCAL)
NAMESRV = ("mqnamesrv", "--port", "0", *LOCAL)
UP = """
import sys
from twisted_mq.cli.mq import main
sys.argv = ["mq", "up", "--temporary", "--port", "0", "--namesrv-port", "0"]
main()
"""


@pytest.mark.parametrize(("words", "ready"), [(BROKER, "broker registered"), (NAMESRV, "name server ready")])
def test_server_without_a_log_file_stops_cleanly(tmp_path, words, ready):
    with RunningDaemon(sys.executable, tmp_path, "--pidfile=it.pid", *words) as daemon:
        daemon.wait_for(ready)
        assert (tmp_path / "it.pid").exists()
        daemon.signal(signal.SIGHUP)
        daemon.signal(signal.SIGHUP)
        assert daemon.ended() == 0
    assert "Traceback" not in "\n".join(daemon.lines)
    assert not (tmp_path / "it.pid").exists()
    assert not (tmp_path / "store" / "abort").exists()


def test_log_file_that_was_moved_is_opened_anew(tmp_path):
    log, moved = tmp_path / "it.log", tmp_path / "moved.log"
    with RunningDaemon(sys.executable, tmp_path, "--logfile=it.log", *BROKER) as daemon:
        wait_until(lambda: log.exists() and "broker registered" in log.read_text())
        log.rename(moved)
        daemon.signal(signal.SIGHUP)
        wait_until(log.exists)
        assert daemon.terminate() in (0, -signal.SIGTERM)
    assert "Server Shut Down" in log.read_text() and "Server Shut Down" not in moved.read_text()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (log, moved)] == [0o600, 0o600]
    assert not (tmp_path / "store" / "abort").exists()


def test_daemon_in_the_background_goes_on_in_a_new_log_file(tmp_path):
    log, pid_file = tmp_path / "it.log", tmp_path / "it.pid"
    started = run_twistd(sys.executable, tmp_path, "--pidfile=it.pid", "--logfile=it.log", *NAMESRV)
    assert (started.returncode, started.stderr) == (0, "")
    wait_until(lambda: pid_file.exists() and "name server ready" in log.read_text())
    pid = int(pid_file.read_text())
    try:
        log.rename(tmp_path / "moved.log")
        os.kill(pid, signal.SIGHUP)
        wait_until(log.exists)
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not pid_file.exists())
    assert "Server Shut Down" in log.read_text()


def up(folder: Path) -> subprocess.Popen[str]:
    """`mq up --temporary` once it is up; its temporary files lie in the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", UP],
        cwd=folder,
        env={**environment(folder), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    while "Ctrl-C" not in process.stdout.readline():
        assert process.poll() is None
    return process


def test_mq_up_removes_its_temporary_store(tmp_path):
    process = up(tmp_path)
    assert len(list(tmp_path.glob("mq-store-*"))) == 1
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=60)[0] == "stopped\n"
    assert (process.returncode, list(tmp_path.iterdir())) == (0, [])
