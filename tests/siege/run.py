"""All hostile cases beside an honest load: `python -m tests.siege.run --seconds 1200`, see `make siege`.

Name server, master and slave run as processes; so do the besiegers (tests.siege.attacks) and the honest clients (sends,
transactions, delayed messages, pops). Then all stop, and the stores are read.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interop.peers.process import PeerFailed, Process, wait_until
from tests.fuzz.run import ask
from tests.fuzz.values import TOPICS as FUZZ_TOPICS
from tests.siege.names import TOPICS
from tests.siege.outcome import Outcome, broken_promises, slow
from tests.siege.servers import SiegeServers
from tests.soak.servers import ROOT, Log, anonymous_mib, processor_seconds
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.check import check_store
from twisted_mq.storage.interfaces import Inconsistency

SAMPLE_SECONDS = 0.5
HONEST_END_SECONDS = 180.0
SYNC_SECONDS = 60.0
STOP_SECONDS = 180.0
TIMEOUT_SECONDS = 3.0
"""Timeout of an honest send: the clients' default."""
MIB = 1 << 20
SEED = 20261125


class Siege:
    """A run in an empty directory."""

    def __init__(self, directory: Path, seconds: float, seed: int = SEED, timeout: float = TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        self._directory = directory
        self._seconds = seconds
        self._seed = seed
        self._servers = SiegeServers(directory)
        self.outcome = Outcome(seconds)

    def run(self) -> Outcome:
        """Raises what went wrong before anything could be measured."""
        servers = self._servers
        try:
            servers.start()
            servers.start_slave()
            servers.make_honest_topics()
            with self._besiegers():
                self._honest()
            self._end_of_slave()
            self._stop()
            self._judge()
        finally:
            servers.stop()
        return self.outcome

    @contextlib.contextmanager
    def _besiegers(self) -> Iterator[None]:
        servers = self._servers
        command = [sys.executable, "-m", "tests.siege.besiegers", json.dumps(servers.ports)]
        command += [str(servers.put_large_message()), str(self._seed)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        crowd = Process.start(command, self._directory / "besiegers.log", ROOT, **pipes)
        try:
            yield
            printed, _ = crowd.child.communicate(timeout=120)
        finally:
            crowd.stop()
        if crowd.child.returncode:
            raise RuntimeError(f"the besiegers ended with {crowd.child.returncode}:\n{crowd.output_tail()}")
        seen = json.loads(printed)
        self.outcome.connections, self.outcome.strangers = seen["connections"], seen["attacks"]

    def _honest(self) -> None:
        """Run the honest load, and look at the servers' memory meanwhile."""
        command = [sys.executable, "-m", "tests.siege.honest", self._servers.name_server]
        command += [str(self._seconds), str(self._timeout)]
        printed = self._directory / "honest.json"
        with printed.open("wb") as output:
            load = Process.start(command, self._directory / "honest.log", ROOT, stdout=output)
            end = time.monotonic() + self._seconds + HONEST_END_SECONDS
            while load.child.poll() is None and time.monotonic() < end:
                self._look()
                time.sleep(SAMPLE_SECONDS)
            self.outcome.load_average = os.getloadavg()[1]
            status = load.stop()
        if status:
            raise RuntimeError(f"the honest load ended with {status}:\n{load.output_tail()}")
        self.outcome.honest = json.loads(printed.read_bytes())

    def _look(self) -> None:
        for name, process in self._servers.processes.items():
            if process.child.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.child.returncode}:\n{process.output_tail()}")
            most = self.outcome.most_memory
            most[name] = max(most.get(name, 0.0), round(anonymous_mib(process), 1))

    def _end_of_slave(self) -> None:
        """The besiegers are gone: the slave gets what its master has now."""
        end = self._ha_status()["masterCommitLogMaxOffset"]

        def behind() -> int:
            acknowledged = [one["slaveAckOffset"] for one in self._ha_status().get("haConnectionInfo") or ()]
            return max(0, int(end) - max(map(int, acknowledged), default=0))

        with contextlib.suppress(PeerFailed):
            wait_until(lambda: behind() == 0, "the slave has all", SYNC_SECONDS)
        self.outcome.slave_behind_bytes = behind()

    def _ha_status(self) -> dict[str, Any]:
        answer = ask(self._servers.broker_port, RemotingCommand.request(RequestCode.GET_BROKER_HA_STATUS))
        found: dict[str, Any] = json.loads(answer.body)
        return found

    def _stop(self) -> None:
        processes = self._servers.processes
        self.outcome.processor_seconds = {name: processor_seconds(process) for name, process in processes.items()}
        order = ("slave", "broker", "name server")
        self.outcome.exit_status = {name: processes[name].stop(STOP_SECONDS) for name in order}

    def _judge(self) -> None:
        outcome = self.outcome
        sizes = IndexSizes(100_000, 400_000)
        for store in (self._servers.store, self._servers.slave_store):
            problems = check_store(str(store), index_sizes=sizes)
            outcome.wrong += [f"{store.name}: {one}" for one in problems if not of_deleted_topic(one)]
        different = different_files(self._servers.slave_store, self._servers.store)
        outcome.wrong += [f"the slave's log is not its master's: {name}" for name in different]
        for name, process in self._servers.processes.items():
            log = Log(process.output())
            outcome.long_turns[name] = len(log.long_turns)
            outcome.longest_turns[name] = log.long_turns[:5]
            outcome.logs_mib[name] = round(len(log.text) / MIB, 2)
            outcome.faults += [_both_ends(one) for one in log.faults]


def _both_ends(text: str) -> str:
    """Return the beginning and the end of a long line: what a traceback says comes last."""
    return text if len(text) <= 1000 else f"{text[:300]} ... {text[-600:]}"


def of_deleted_topic(problem: Inconsistency) -> bool:
    """Return True for a record of a stranger's topic that no queue entry leads to: strangers delete their topics, and make some
    of them again without a message. The store does not tell such a topic from one that lost its queue.
    """
    topic = problem.path.partition("/")[0]
    return topic in FUZZ_TOPICS and topic not in TOPICS and problem.problem.startswith("no entry leads to")


def different_files(slave: Path, master: Path) -> list[str]:
    """The files of the slave's log that are no beginning of its master's: the master goes on after its slave has stopped."""
    files = sorted((slave / "commitlog").iterdir())
    different = [
        one.name
        for one in files
        if not (master / "commitlog" / one.name).read_bytes().startswith(one.read_bytes().rstrip(b"\0"))
    ]
    return different if files else ["it has no file"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SIEGE_SECONDS", "1200")))
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mq-siege-") as folder:
        outcome = Siege(Path(folder), options.seconds, options.seed).run()
    print(outcome.text())
    problems = broken_promises(outcome) + slow(outcome)
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
