"""The file that a daemon writes its log to under twistd: of bounded size, and opened anew where it was moved away."""

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
"""twistd's own logs rotate at 1 MB, and none is ever removed."""

TO_STDOUT = "-"
DEFAULT_NAME = "twistd.log"


class DaemonLog(LogFile):
    """Rotates to `.1`, `.2` and so on; the oldest goes."""

    synchronized = ["reopen"]
    log = Logger()

    def reopen(self) -> None:
        """Go on in a file of that name; where none can be opened, in the one before."""
        before = self._file
        try:
            self._openFile()
        except OSError as error:
            self.log.error("log file not opened anew, the one before goes on: {e}", e=error)
        else:
            before.close()


synchronize(DaemonLog)


def daemon_log(path: str) -> DaemonLog:
    """Raises OSError."""
    log: DaemonLog = DaemonLog.fromFullPath(path, rotateLength=FILE_BYTES, maxRotatedFiles=ROTATED_FILES)
    return log


def observer(log: DaemonLog | TextIO, *, as_json: bool = False) -> ILogObserver:
    """Writes lines of text to a file, as twistd's own, or of JSON. Twisted's own lines are escaped and shortened, too."""
    file = cast("IO[Any]", log)  # nobody asks of it more than a LogFile has
    return Safely(JsonLog(file) if as_json else textFileLogObserver(file))


def writes_to_stdout(twistd: Mapping[str, object]) -> bool:
    """Whether twistd's options have its log there."""
    return log_path(twistd) is None and not twistd.get("syslog") and not twistd.get("logger")


def log_path(twistd: Mapping[str, object]) -> str | None:
    """Where twistd's options put the log; None where that is no file of its own. As twisted.scripts.UnixAppLogger."""
    name = twistd.get("logfile")
    if twistd.get("syslog") or twistd.get("logger") or name == TO_STDOUT or (twistd.get("nodaemon") and not name):
        return None
    return str(name or DEFAULT_NAME)
