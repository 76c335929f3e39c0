"""What reaches standard error, in a process of its own: logging begins once."""

import subprocess
import sys

SCRIPT = """
import sys
from twisted.logger import Logger
from twisted_mq.cli.logs import log_to_stderr

log_to_stderr(sys.argv[1] == "verbose")
log = Logger()
log.debug("a detail")
log.info("an event")
log.warn("a warning")
"""


def events(kind: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, kind], capture_output=True, text=True, check=True)
    return [line.split("] ")[1] for line in done.stderr.splitlines()]


def test_warnings_are_printed_always_and_events_when_asked():
    assert events("quiet") == ["a warning"]
    assert events("verbose") == ["an event", "a warning"]
