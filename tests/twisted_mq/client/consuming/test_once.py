"""Handled messages are not handled again: in memory, SQLite, Redis; in plain blocks and in tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages import received
from twisted_mq import aio
from twisted_mq.client import (
    HandledElsewhere,
    Seen,
    SeenInMemory,
    SeenInRedis,
    SeenInSqlite,
    SeenKeys,
    message_key,
    once,
)

MESSAGE = received(unique_key="K1")


class FakeRedis:
    """SET with NX and PX, GET and DEL as Redis has them; `now_ms` is the test's."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.keys: dict[str, tuple[str, int]] = {}

    def get(self, name: str) -> bytes | None:
        value, until = self.keys.get(name, ("", 0))
        return value.encode() if until > self.now_ms else None

    def set(self, name: str, value: str, *, px: int, nx: bool = False) -> bool | None:
        if nx and self.get(name) is not None:
            return None
        self.keys[name] = value, self.now_ms + px
        return True

    def delete(self, name: str) -> None:
        self.keys.pop(name, None)


@pytest.fixture(params=["memory", "sqlite", "redis"])
def seen(request: pytest.FixtureRequest, tmp_path: Path) -> SeenKeys:
    made: dict[str, Callable[[], SeenKeys]] = {
        "memory": SeenInMemory,
        "sqlite": lambda: SeenInSqlite(tmp_path / "seen.db"),
        "redis": lambda: SeenInRedis(FakeRedis()),
    }
    return made[request.param]()


def test_the_second_time_is_not_fresh(seen: SeenKeys) -> None:
    told = []
    for _ in range(3):
        with once(seen, MESSAGE) as fresh:
            told.append(fresh)
    assert told == [True, False, False]


def test_work_that_failed_is_done_again(seen: SeenKeys) -> None:
    with pytest.raises(ZeroDivisionError), once(seen, MESSAGE):
        raise ZeroDivisionError
    with once(seen, MESSAGE) as fresh:
        assert fresh


def test_while_it_is_handled_another_consumer_is_told(seen: SeenKeys) -> None:
    told = pytest.raises(HandledElsewhere, match="Orders/K1 is being handled by another consumer")
    with once(seen, MESSAGE), told, once(seen, MESSAGE):
        pytest.fail("it was entered twice")
    with once(seen, MESSAGE) as fresh:
        assert not fresh


def test_keys_of_your_own(seen: SeenKeys) -> None:
    with once(seen, MESSAGE, key=lambda message: message.body.decode()) as fresh:
        assert fresh
    assert (seen.begin("x"), seen.begin(message_key(MESSAGE))) == (Seen.DONE, Seen.NEW)


def test_one_of_many_threads_has_it(seen: SeenKeys) -> None:
    began: list[Seen] = []
    threads = [threading.Thread(target=lambda: began.append(seen.begin("k"))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(began, key=str) == [Seen.BEGUN] * 7 + [Seen.NEW]


def test_tasks(seen: SeenKeys) -> None:
    async def main() -> list[Any]:
        told: list[Any] = []
        async with aio.once(seen, MESSAGE) as fresh:
            told.append(fresh)
            with pytest.raises(HandledElsewhere):
                async with aio.once(seen, MESSAGE):
                    pytest.fail("it was entered twice")
        async with aio.once(seen, MESSAGE) as fresh:
            told.append(fresh)
        other = received(b"y", msg_id="M2")
        entered = asyncio.Event()

        async def cancelled() -> None:
            async with aio.once(seen, other):
                entered.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(cancelled())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with aio.once(seen, other) as fresh:
            told.append(fresh)
        return told

    assert asyncio.run(main()) == [True, False, True]


def test_sqlite_remembers_over_a_restart_and_forgets_in_time(tmp_path: Path) -> None:
    now = [1000.0]

    def opened() -> SeenInSqlite:
        return SeenInSqlite(tmp_path / "seen.db", keep_seconds=100, lease_seconds=10, now=lambda: now[0])

    store = opened()
    store.begin("done")
    store.done("done")
    store.begin("died")
    store.close()
    store = opened()
    assert (store.begin("done"), store.begin("died")) == (Seen.DONE, Seen.BEGUN)
    now[0] += 10
    assert (store.begin("done"), store.begin("died")) == (Seen.DONE, Seen.NEW)
    now[0] += 90
    assert store.begin("done") is Seen.NEW


def test_redis_forgets_in_time() -> None:
    redis = FakeRedis()
    store = SeenInRedis(redis, keep_seconds=100, lease_seconds=10)
    store.begin("k")
    redis.now_ms = 10_000
    assert store.begin("k") is Seen.NEW
    store.done("k")
    redis.now_ms = 109_999
    assert store.begin("k") is Seen.DONE
    redis.now_ms = 110_000
    assert store.begin("k") is Seen.NEW


def test_memory_keeps_the_newest_keys() -> None:
    store = SeenInMemory(most=2)
    for key in "abc":
        store.begin(key)
        store.done(key)
    assert [store.begin(key) for key in "cba"] == [Seen.DONE, Seen.DONE, Seen.NEW]
