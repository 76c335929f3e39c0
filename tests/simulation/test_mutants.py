"""The faults that are put in on purpose fit the tree as it is; which seed finds them, `make simulate-mutants` shows."""

from __future__ import annotations

import subprocess

from tests.simulation.run_mutants import APPLY, PATCHES, ROOT


def test_each_fault_that_is_put_in_on_purpose_still_applies() -> None:
    patches = sorted(PATCHES.glob("*.patch"))
    checked = [subprocess.run([*APPLY, "--check", one], cwd=ROOT, capture_output=True) for one in patches]
    assert len(patches) > 40
    assert [(one.args[-1].stem, one.stderr) for one in checked if one.returncode] == []
