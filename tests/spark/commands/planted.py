"""A store in which everything happened that jobs look for, once."""

from __future__ import annotations

import json
from pathlib import Path

from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.protocol.flags import MessageSysFlag

STEP_MS = 1000
HALF, OPERATIONS = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SCHEDULE, TIMER = "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"
RETRY, DEAD = "%RETRY%audit", "%DLQ%audit"


def plant(root: Path) -> str:
    """Orders of two queues, with a gap and a message sent twice; retries, a dead letter, transactions, timers, offsets."""
    store = StoreWriter(root, file_size=2048)

    def put(topic: str, key: str, body: bytes = b"body", **fields: object) -> int:
        properties = {"UNIQ_KEY": key, **fields.pop("properties", {})}  # type: ignore[dict-item]
        fields.setdefault("born_timestamp", BORN_MS + STEP_MS * len(store.positions))
        return store.append(topic, body, properties, **fields)  # type: ignore[arg-type]

    for offset, key in ((0, "K0"), (1, "K1"), (2, "K2"), (5, "K5"), (6, "K6")):
        put(
            "Orders", key, queue_offset=offset, properties={"TAGS": "new", "KEYS": f"order-{offset} all"}, latency_ms=10
        )
    put("Orders", "K1", queue_id=1, properties={"TAGS": "new"}, latency_ms=30)
    for tries in (1, 2):
        put(RETRY, "K0", reconsume_times=tries, properties={"RETRY_TOPIC": "Orders", "KEYS": "order-0 all"})
    put(DEAD, "K0", reconsume_times=3, properties={"RETRY_TOPIC": "Orders", "KEYS": "order-0 all"})
    real = {"REAL_TOPIC": "Paid", "REAL_QID": "0", "PGROUP": "payers"}
    committed = put(HALF, "T0", properties=real)
    for key in ("T1", "T2", "T3", "T3"):
        put(HALF, key, properties=real)
    flag = MessageSysFlag.TRANSACTION_COMMIT_TYPE
    put("Paid", "T0", sys_flag=flag, prepared_transaction_offset=committed, properties=real)
    put(OPERATIONS, "op", b"0,1,3,", properties={"TAGS": "d"})
    later = {"REAL_TOPIC": "Later", "REAL_QID": "0"}
    due = BORN_MS + STEP_MS * (len(store.positions) + 5)
    put(SCHEDULE, "D0", code=due, properties=later)
    put(SCHEDULE, "D1", code=due, properties=later)
    put(TIMER, "D2", properties={**later, "TIMER_OUT_MS": str(due)})
    put("Later", "D0", born_timestamp=due, latency_ms=40)
    put("Later", "D2", born_timestamp=due, latency_ms=700)
    put("Orders", "K7", queue_id=1, born_timestamp=due + 3_600_000)
    path = store.write()
    (root / "config").mkdir()
    offsets = {"Orders@audit": {"0": 2, "1": 0}, "Orders@done": {"0": 7}, "Gone@audit": {"0": 3}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    return path
