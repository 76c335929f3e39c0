"""`mq order audit`: tables, JSON and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from tests.support.ordered_stores import OrderedStores
from twisted_mq.cli.order import order
from twisted_mq.storage.tables.passed_over_table import PASSED_OVER_FILE, PassedOverTable, PassOver


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(order, ["audit", *arguments])


def test_queues_in_order(tmp_path: Path) -> None:
    stores = OrderedStores(tmp_path)
    stores.send("a", 1, 0, range(1, 6))
    stores.send("b", 2, 0, range(4, 9), base=4)
    a, b = stores.write()
    result = audit(a, b)
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "topic\tqueue\tepoch\tleader\tmessages\tsequences\toffsets\tresent\tstores",
            f"Orders\t0\t1\t0\t5\t1..5\t0..4\t0\t{a}",
            f"Orders\t0\t2\t0\t5\t4..8\t0..4\t2\t{b}",
            "1 ordered queues: all in order",
        ],
    )


def test_a_gap_a_swap_and_a_repeat(tmp_path: Path) -> None:
    stores = OrderedStores(tmp_path)
    stores.send("a", 1, 0, [1, 2, 2, 5, 4])
    (path,) = stores.write()
    places = stores.writers["a"].positions
    result = audit(path)
    assert (result.exit_code, result.stdout.splitlines()[2:]) == (
        1,
        [
            "topic\tqueue\tfault\tepoch\tleader\tsequences\tstore\tphysicalOffset\twhat",
            f"Orders\t0\trepeat\t1\t0\t2\t{path}\t{places[2]}\tis a repeat in its epoch",
            f"Orders\t0\tgap\t1\t0\t3\t{path}\t{places[4]}\t"
            "no store has these sequences: lost, or never sent by their producer",
            f"Orders\t0\tswap\t1\t0\t4\t{path}\t{places[4]}\tcomes after a later sequence of its leader",
            "1 ordered queues: 3 faults",
        ],
    )


def test_json(tmp_path: Path) -> None:
    stores = OrderedStores(tmp_path)
    stores.send("a", 1, 0, [1, 1])
    (path,) = stores.write()
    result = audit(path, "--json")
    place = {"topic": "Orders", "queue": 0, "epoch": 1, "leader": 0, "first": 1, "last": 1}
    term = {**place, "stores": [path], "messages": 2, "firstOffset": 0, "lastOffset": 1, "resent": 0}
    fault = {**place, "kind": "repeat", "store": path, "physicalOffset": stores.writers["a"].positions[1]}
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"terms": [term], "faults": [fault], "passedOver": []})


def test_what_groups_passed_over_is_shown(tmp_path: Path) -> None:
    stores = OrderedStores(tmp_path)
    stores.send("a", 1, 0, [1, 2, 3])
    (path,) = stores.write()
    table = PassedOverTable(f"{path}/config/{PASSED_OVER_FILE}")
    table.passed_over = [PassOver("Orders", 0, "G", 1, 1, 2, "never acknowledged", 1_795_217_217_000)]
    table.save()
    result = audit(path)
    assert (result.exit_code, result.stdout.splitlines()[2:]) == (
        0,
        [
            "Messages that a consumer group skipped without consuming them there:",
            "topic\tqueue\tepoch\tgroup\tpassed over\toffsets\treason\tstore",
            f"Orders\t0\t1\tG\t2\t1..2\tnever acknowledged\t{path}",
            "1 ordered queues: all in order",
        ],
    )
    (row,) = json.loads(audit(path, "--json").stdout)["passedOver"]
    assert row == {"topic": "Orders", "queue": 0, "group": "G", "epoch": 1, "firstOffset": 1, "count": 2,
                   "reason": "never acknowledged", "store": path}  # fmt: skip


def test_damage_is_named_and_fails(tmp_path: Path) -> None:
    stores = OrderedStores(tmp_path)
    stores.send("a", 1, 0, [1, 2])
    writer = stores.writers["a"]
    writer.overwrite(writer.positions[1], b"\x01" * 20)
    (path,) = stores.write()
    result = audit(path)
    assert result.exit_code == 1
    assert f"mq order audit: {path}/commitlog/{0:020d} at offset {writer.positions[1]}: " in result.stderr


def test_stores_without_ordered_queues(tmp_path: Path) -> None:
    stores = OrderedStores(tmp_path)
    stores.put("a", {})
    result = audit(*stores.write())
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "0 ordered queues: all in order")
