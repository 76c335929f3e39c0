"""Configuration files mean here what they mean to Apache's broker: key by key, as its configuration classes read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.peers.clients import JavaPeer
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.known_keys import OLD_NAMES, known_keys
from twisted_mq.config.options import read_options, shown_options
from twisted_mq.config.properties import read_properties
from twisted_mq.config.values import value_text

pytestmark = pytest.mark.peer

FILES = sorted((Path(__file__).parents[1] / "tests" / "twisted_mq" / "config" / "files").glob("*.conf"))
UNTIL_5_3_2 = {"aclEnable"}
"""Keys that Apache's 5.3.3 has no more, and that are served here."""


def test_there_are_files() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_key_has_the_value_that_apache_acts_by(java: JavaPeer, path: Path) -> None:
    """Apache's 5.3.3 ignores names of 4.x, which are accepted here: their files are compared with the present names."""
    text = path.read_text(encoding="latin-1")
    for old, present in OLD_NAMES.items():
        text = text.replace(f"{old}=", f"{present}=")
    apaches = java.request("configuration", text=text)
    entries = read_properties(str(path))
    ours = shown_options(read_options(BrokerOptions, entries)[0])
    keys = {OLD_NAMES.get(entry.key, entry.key) for entry in entries} & ours.keys() & known_keys().keys()
    keys -= UNTIL_5_3_2
    assert keys
    assert {key: value_text(ours[key]) for key in keys} == {key: apaches[key] for key in keys}
