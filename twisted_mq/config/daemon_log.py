"""Writes a daemon's log under twistd to a file of bounded size, which is reopened after it was moved away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, TextIO, cast

from twisted.logger import ILogObserver, textFileLogObserver
from twisted.python.logfile import LogFile
from twisted.python.threadable import synchronize

from twisted_mq.config.json_log import JsonLog
from twisted_mq.logs import Logger, Safely

FILE_BYTES = 10 * 1024 * 1024
ROTATED_FILES = 10
"""The number of rotated files. twistd's own logs rotate at 1 MB, and are never removed."""

TO_STDOUT = "-"
DEFAULT_NAME = "twistd.log"


class DaemonLog(LogFile):
    """A log file that rotates to `.1`, `.2` and so on; the oldest is removed."""

    synchronized = ["reopen"]
    log = Logger()

    def reopen(self) -> None:
        """Continue in a new file of that name or, if it cannot be opened, in the old one."""
        before = self._file
        try:
            self._openFile()
        except OSError as error:
            self.log.error("log file not reopened, logging continues in the old one: {e}", e=error)
        else:
            before.close()


synchronize(DaemonLog)


def daemon_log(path: str) -> DaemonLog:
    """Open a daemon's log. Raises OSError."""
    log: DaemonLog = DaemonLog.fromFullPath(path, rotateLength=FILE_BYTES, maxRotatedFiles=ROTATED_FILES)
    return log


def observer(log: DaemonLog | TextIO, *, as_json: bool = False) -> ILogObserver:
    """Return an observer that writes lines of text, as twistd's own, or JSON. Twisted's own lines are escaped and
    shortened, too.
    """
    file = cast("IO[Any]", log)  # only LogFile's methods are used
    return Safely(JsonLog(file) if as_json else textFileLogObserver(file))


def writes_to_stdout(twistd: Mapping[str, object]) -> bool:
    """Return True if twistd's options send its log to standard output."""
    return log_path(twistd) is None and not twistd.get("syslog") and not twistd.get("logger")


def log_path(twistd: Mapping[str, object]) -> str | None:
    """Return the file of the log in twistd's options; None if it is not a file of its own. As twisted.scripts.UnixAppLogger."""
    name = twistd.get("logfile")
    if twistd.get("syslog") or twistd.get("logger") or name == TO_STDOUT or (twistd.get("nodaemon") and not name):
        return None
    return str(name or DEFAULT_NAME)
