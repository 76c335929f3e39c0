"""Measures the adverse shapes and prints the table of docs/measurements/cost-by-request.md: `make cost`.

With `--all` every request that a broker serves is measured in general shapes too, which takes some minutes.
"""

from __future__ import annotations

import argparse
import logging
import tempfile

from tests.cost.shapes import SHAPES, general
from tests.cost.turns import Meter, cost_of
from tests.support.broker import BrokerInMemory
from twisted_mq.protocol.codes import RequestCode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="general shapes of all requests too")
    logging.disable(logging.CRITICAL)
    shapes = list(SHAPES)
    if parser.parse_args().all:
        shapes += [shape for code in sorted(BrokerInMemory().processors) for shape in general(code)]
    print("| code | request | shape | worst turn, ms | turns | bytes kept | after the disconnect |")
    print("|---:|---|---|---:|---:|---:|---:|")
    for shape in shapes:
        with tempfile.TemporaryDirectory() as folder:
            cost = cost_of(shape, Meter(), folder)
        print(
            f"| {shape.code} | {RequestCode(shape.code).name} | {shape.name} | {1000 * cost.worst:.1f} | {cost.turns}"
            f" | {cost.kept_bytes:,} | {cost.left_bytes:,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
