"""Apache's broker on stores that `mq store repair` and `mq store rebuild` mended: it serves and finds each intact message."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interop.test_store_interchange import A_TURN, OTHER, Relay, relay
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.store_reader import StoreReader

pytestmark = pytest.mark.peer

__all__ = ["relay"]
TURNS = 2
LOST = 9
"""The number in its turn of the message that is damaged; others follow it in its queue."""
KEYS = ("turn0", "turn1", f"own0x{LOST + 1}")


def mq_store(command: str, store: Path, *options: str) -> int:
    """The exit status of `mq store`, whose output goes to the test's."""
    mq = str(Path(sys.executable).parent / "mq")
    return subprocess.run([mq, "store", command, str(store), *options], check=False, timeout=60).returncode


def flip_a_bit_of_the_body(relay: Relay, body: str) -> None:
    reader = StoreReader(str(relay.cluster.store))
    for offset, record in reader.records():
        if decode_message(record).body == body.encode():
            place = bytes(record).index(body.encode())
            file = next(one for one in reader.files if one.first_offset <= offset < one.first_offset + one.size)
            position = offset + place - file.first_offset
            with open(file.path, "r+b") as log:
                log.seek(position)
                log.write(bytes([record[place] ^ 1]))
            return
    raise AssertionError(f"no message {body!r}")


def by_id(messages: list[Any]) -> dict[str, Any]:
    """In the place of a lost message its follower is served once more."""
    return {message["msg_id"]: message for message in messages}


def test_apaches_broker_serves_what_the_tools_mended(relay: Relay) -> None:
    store = relay.cluster.store
    for _ in range(TURNS):
        relay.send()
    before = by_id(relay.messages())
    relay.leave(cleanly=True)

    lost = f"turn 0 number {LOST}"
    flip_a_bit_of_the_body(relay, lost)
    sorted((store / "consumequeue" / relay.topic / "0").iterdir())[0].unlink()
    assert mq_store("verify", store) == 1
    assert mq_store("repair", store, "--apply") == 0
    assert mq_store("verify", store) == 0
    relay.open(OTHER)
    intact = {msg_id: message for msg_id, message in before.items() if message["body"] != lost}
    assert by_id(relay.messages()) == intact and len(intact) == TURNS * A_TURN - 1
    assert "no message" in " ".join(relay.found(f"own0x{LOST}"))
    found = {key: relay.found(key) for key in KEYS}
    assert [len(lines) - 1 for lines in found.values()] == [A_TURN - 1, A_TURN, 1]
    relay.leave(cleanly=True)

    shutil.rmtree(store / "consumequeue")
    index = sorted((store / "index").iterdir())[0]
    index.write_bytes(bytes(index.stat().st_size))
    assert mq_store("rebuild", store, "--apply", "--queue-file-size", "400") == 0
    assert mq_store("verify", store) == 0
    relay.open(OTHER)
    assert by_id(relay.messages()) == intact
    assert {key: relay.found(key) for key in KEYS} == found
    relay.leave(cleanly=True)
    assert relay.problems() == []
