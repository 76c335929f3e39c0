"""Sends the log of servers and clients somewhere while a command runs."""

from __future__ import annotations

import sys


def log_to_stderr(verbose: bool) -> None:
    """Write log lines to standard error: warnings and worse, with `verbose` everything from info on."""
    from twisted.logger import (
        FilteringLogObserver,
        LogLevel,
        LogLevelFilterPredicate,
        globalLogBeginner,
        textFileLogObserver,
    )

    from twisted_mq.logs import Safely

    lowest = LogLevel.info if verbose else LogLevel.warn
    predicate = LogLevelFilterPredicate(defaultLogLevel=lowest)
    observer = FilteringLogObserver(Safely(textFileLogObserver(sys.stderr)), [predicate])
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False, discardBuffer=True)
