"""Runs seeds on all cores: `python -m tests.simulation.run --count 1000 --first 1`, or one with its history: `--seed 7`."""

from __future__ import annotations

import argparse
import functools
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
from twisted.logger import globalLogBeginner

from tests.simulation.account import Account, Line, report
from tests.simulation.acting_scenario import ActingScenario
from tests.simulation.fault_weights import Rewards
from tests.simulation.scenario import Scenario
from tests.simulation.simulate import Outcome, simulate

SEEDS_A_SUM = 1000
"""After so many the sums so far are shown."""
HISTORY_LINES = 60
"""Lines of history of a seed that broke a promise."""


@attrs.define
class Totals:
    """Totals of many seeds."""

    seeds: int = 0
    seconds: float = 0.0
    acknowledged: int = 0
    consumed: int = 0
    lost: int = 0
    faults: Counter[str] = attrs.field(factory=Counter)
    broken: list[Outcome] = attrs.field(factory=list)
    reached: set[Line] = attrs.field(factory=set)
    rewards: Rewards = attrs.field(factory=Rewards)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.seconds += outcome.seconds
        self.acknowledged += outcome.acknowledged
        self.consumed += outcome.consumed
        self.lost += outcome.lost
        self.faults.update(outcome.faults)
        self.rewards.add(outcome.faults, len(set(outcome.reached) - self.reached))
        self.reached.update(outcome.reached)
        if outcome.broken:
            self.broken.append(outcome)

    def lines(self) -> Iterator[str]:
        yield f"{self.seeds:,} seeds, {self.seconds / 3600:,.1f} virtual hours"
        yield f"{self.acknowledged:,} messages acknowledged, {self.consumed:,} consumed"
        yield f"{self.lost:,} lost in power cuts under asynchronous flush, as they may be"
        yield f"{self.faults.total():,} faults: " + ", ".join(f"{n:,} {kind}" for kind, n in self.faults.most_common())
        yield f"{len(self.broken)} seeds broke a promise"


def outcomes(
    seeds: Iterable[int], processes: int, *, account: bool = False, kind: type[Scenario] | None = None
) -> Iterator[Outcome]:
    """The outcomes, in the order of the seeds; histories only of those that broke a promise."""
    one = functools.partial(_brief, account=account, kind=kind)
    if processes == 1:
        yield from map(one, seeds)
        return
    with multiprocessing.get_context("fork").Pool(processes, initializer=_quiet) as pool:
        yield from pool.imap(one, seeds, chunksize=4)


_account = functools.cache(Account)
"""The one of this process."""


def _brief(seed: int, account: bool = False, kind: type[Scenario] | None = None) -> Outcome:
    outcome = simulate(seed, account=_account() if account else None, kind=kind)
    return outcome if outcome.broken else attrs.evolve(outcome, history=[])


def _quiet() -> None:
    """Disable Twisted's log and its buffer: errors hold the worlds in which they were raised."""
    logging.basicConfig(level=logging.CRITICAL + 1)
    globalLogBeginner.beginLoggingTo([lambda _: None], redirectStandardIO=False, discardBuffer=True)


def show(outcome: Outcome, lines: int = HISTORY_LINES) -> None:
    """Print the result of a seed."""
    print(f"seed {outcome.seed}: {outcome.broken or 'every promise was kept'}, {outcome.seconds:.0f} virtual seconds")
    print("\n".join(outcome.history[-lines:]))
    print(f"trace {outcome.trace}; again: make simulate SEED={outcome.seed}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and show its history")
    parser.add_argument("--log", default="ERROR", help="with --seed: what services log from this level on is shown too")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--step", type=int, default=1, help="3 from 3 on: only worlds with ordered groups")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--account", metavar="FILE", help="write there which lines of the services no seed reached")
    parser.add_argument(
        "--weigh", action="store_true", help="draw faults by what reached new lines in these worlds from now on"
    )
    parser.add_argument("--acting", action="store_true", help="worlds in which slaves act for their lost masters")
    parser.add_argument("--until-broken", action="store_true", help="stop at the first seed that breaks a promise")
    options = parser.parse_args(arguments)
    _quiet()
    kind = ActingScenario if options.acting else None
    if options.seed is not None:
        outcome = simulate(options.seed, logging.getLevelNamesMapping()[options.log], kind=kind)
        show(outcome, len(outcome.history))
        return bool(outcome.broken)
    seeds = range(options.first, options.first + options.count, options.step)
    return _many(seeds, options, kind)


def _many(seeds: range, options: argparse.Namespace, kind: type[Scenario] | None) -> int:
    totals, began, told = Totals(), time.monotonic(), 0.0
    account: str | None = options.account
    with_account = account is not None or options.weigh
    for outcome in outcomes(seeds, options.processes, account=with_account, kind=kind):
        totals.add(outcome)
        if outcome.broken:
            show(outcome)
            if options.until_broken:
                break
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{totals.seeds:,} of {len(seeds):,} seeds, {told - began:.0f} s", flush=True)
        if totals.seeds % SEEDS_A_SUM == 0 and totals.seeds < len(seeds):
            print("\n".join(totals.lines()), flush=True)
    print("\n".join(totals.lines()))
    if options.weigh:
        totals.rewards.save()
    if account is not None:
        *_, sum_of_all = lines = list(report(totals.reached))
        Path(account).write_text("\n".join(lines) + "\n")
        print(f"{sum_of_all}; {account} names the others")
    return bool(totals.broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
