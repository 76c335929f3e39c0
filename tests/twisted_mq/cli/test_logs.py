"""Lines on standard error, in a separate process: logging can start only once."""

import subprocess
import sys

SCRIPT = """
import sys
import logging
from twisted_mq.cli.logs import log_to_stderr
from twisted_mq.cli.run import run_under_reactor
from twisted_mq.logs import Logger

log = Logger()
store_log = logging.getLogger("twisted_mq.storage.log")

async def main(reactor):
    log.debug("a detail")
    log.info("an event")
    store_log.warning("a warning")
    log.critical("a disaster")

if sys.argv[1] != "plain":
    log_to_stderr(sys.argv[1] == "verbose")
run_under_reactor(main)
"""


def events(kind: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, kind], capture_output=True, text=True, check=True)
    return [line.rpartition("] ")[2] for line in done.stderr.splitlines()]


def test_warnings_are_printed_always_and_events_when_asked():
    assert events("quiet") == ["a warning", "a disaster"]
    assert [one for one in events("verbose") if one.startswith("a")] == ["an event", "a warning", "a disaster"]


def test_a_command_that_shows_no_log_prints_critical_lines_alone():
    assert events("plain") == ["a disaster"]
