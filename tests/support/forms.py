"""Runs a module's tests with each form: plain Python, and rocketmq-twisted-speed where it is installed.

`from tests.support.forms import each_form as each_form` does it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from twisted_mq.protocol.layouts import compiled


def compiled_forms() -> compiled.Forms:
    """Return the compiled functions, also where MQ_COMPILED=off. Skips the test where they are not installed."""
    try:
        return compiled.installed()
    except ModuleNotFoundError:
        pytest.skip("rocketmq-twisted-speed is not installed: make speed")


@pytest.fixture(scope="module", params=["plain", "compiled"], autouse=True)
def each_form(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(compiled, "forms", compiled.PLAIN if request.param == "plain" else compiled_forms())
        yield
