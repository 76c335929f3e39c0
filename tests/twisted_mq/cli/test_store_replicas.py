"""`mq store diff` and `mq store truncate` as commands, on what Apache's pair wrote."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from twisted_mq.cli.store import store

CAPTURES = Path(__file__).parents[3] / "interop" / "captures" / "store"


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    for name in ("ha_master", "ha_slave"):
        with tarfile.open(CAPTURES / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
    return tmp_path


def invoke(*arguments: object):
    return CliRunner().invoke(store, [str(argument) for argument in arguments])


def test_apaches_pair_is_equal(stores):
    result = invoke("diff", stores / "ha_master", stores / "ha_slave")
    assert (result.exit_code, result.stdout) == (0, "equal from 0 to 8356\n")


def test_cut_slave_differs_where_it_was_cut(stores):
    lines = invoke("dump", stores / "ha_slave").stdout.splitlines()
    offset = int(lines[-2].split("\t")[3])
    result = invoke("truncate", stores / "ha_slave", "--offset", offset)
    assert (result.exit_code, result.stdout) == (
        0,
        f"the log now ends at {offset}; the removed part is kept in {stores}/ha_slave/damaged/{offset:020}\n",
    )
    result = invoke("diff", stores / "ha_master", stores / "ha_slave")
    assert result.exit_code == 1
    printed = result.stdout.splitlines()
    assert printed[0] == f"first difference at physical offset {offset}, in the record at {offset}"
    assert printed[1] == f"{stores}/ha_master: log from 0 to 8356, 2 messages only here"
    assert printed[-1] == f"{stores}/ha_slave: log from 0 to {offset}, 0 messages only here"
