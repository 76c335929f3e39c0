"""Damaged and forged files of the timer: it opens, forgets what cannot be, never runs in a circle, and takes messages."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.fuzz.cases import cases, dice
from tests.fuzz.values import NUMBERS
from twisted_mq.protocol.layouts.timer import LOG_UNIT, LOG_UNIT_BYTES, WHEEL_SLOT, WHEEL_SLOT_BYTES
from twisted_mq.storage.timer.timer_files import TimerFiles

NOW = 1_795_217_217_000
FILE_BYTES = 20 * LOG_UNIT_BYTES + 16
SLOTS = 30
MOST = 200
RECORD = 100


def files(root: Path) -> TimerFiles:
    return TimerFiles(str(root), 1000, FILE_BYTES, SLOTS)


def write(random: Random, root: Path) -> None:
    """A timer that some messages wait in, stopped cleanly."""
    (root / "config").mkdir(parents=True)
    timer = files(root)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    for number in range(random.randrange(1, 70)):
        timer.add(NOW + random.randrange(9) * 1000, NOW, random.choice((1, 1, 1, 3, 5)), number * RECORD, RECORD, 7)
    timer.write(timer.progress(NOW, 70, NOW))
    timer.close()


def forge(random: Random, path: Path) -> None:
    """Flip bits, write a whole unit or slot with fields at their edges, cut, lengthen, or empty one of the files."""
    data = bytearray(path.read_bytes()) or bytearray(1)
    kind = random.randrange(6)
    if kind == 0:
        for _ in range(random.randrange(1, 9)):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind <= 2:
        forge_record(random, data, LOG_UNIT_BYTES if path.parent.name == "timerlog" else WHEEL_SLOT_BYTES)
    elif kind == 3:
        del data[random.randrange(len(data)) :]
    elif kind == 4:
        data += bytes(random.randrange(200))
    else:
        data[:] = bytes(len(data))
    path.write_bytes(data)


def forge_record(random: Random, data: bytearray, size: int) -> None:
    at = random.randrange(max(1, len(data) // size)) * size
    place = random.choice((0, at, at - size, at + size, -1, 2**62))
    if len(data) < at + size:  # a forgery before this one cut it short
        return
    if size == LOG_UNIT_BYTES:
        delay, offset = random.choice((0, 5000, -(2**31), 2**31 - 1)), random.choice((0, 100, -1, 2**62))
        LOG_UNIT.pack_into(
            data, at, size, place, random.randrange(1, 16), NOW, delay, offset, random.choice((1, -1)), 7, 0
        )
    else:
        time = random.choice((NOW // 1000 + random.randrange(9), 0, -1, *NUMBERS[:13]))
        WHEEL_SLOT.pack_into(data, at, time, place, place, random.choice((0, 1, -1, 2**31 - 1)), 0)


def forged_paths(root: Path) -> list[Path]:
    config = root / "config"
    return [root / "timerwheel", *sorted((root / "timerlog").iterdir()), config / "timercheck", config / "timermetrics"]


def test_forged_timer_files_end_every_chain_and_take_the_next_message(tmp_path: Path) -> None:
    for case in cases(0.1):
        with dice(case) as random:
            root = tmp_path / str(case)
            write(random, root)
            for _ in range(random.choice((1, 1, 3))):
                forge(random, random.choice(forged_paths(root)))
            timer = files(root)
            timer.open(
                clean=random.random() < 0.7, end_of_commit_log=random.choice((0, 1000, 7000)), end_of_queue=1 << 62
            )
            for second in range(-3, 12):
                positions, recalls = timer.positions(NOW + second * 1000)
                assert len(positions) <= MOST and set(recalls) <= set(positions)
                assert all(timer.log.unit(position) is not None for position in positions)
            timer.add(NOW + 20_000, NOW, 1, 0, RECORD, 7)
            assert timer.positions(NOW + 20_000)[0][-1] == timer.log.end - LOG_UNIT_BYTES
            timer.write(timer.progress(NOW, 71, NOW))
            timer.close()
