"""The store's checkpoint file (Apache: StoreCheckpoint) and the timer's (TimerCheckpoint), both 4096 bytes.

    offset size name
    0      8    physic_msg_timestamp    store time of the last message flushed to the log, ms
    8      8    logics_msg_timestamp    to the queues
    16     8    index_msg_timestamp     to the index
    24     8    master_flushed_offset
    32     8    confirm_physical_offset
    40     ..   zeros

The timer's:

    0      8    last_read_time_ms
    8      8    last_timer_log_flush_position
    16     8    last_timer_queue_offset
    24     8    master_timer_queue_offset
    32     8    state_version           these three: the data version
    40     8    timestamp
    48     8    counter
"""

from __future__ import annotations

import construct

CHECKPOINT_FILE_BYTES = 4096

CHECKPOINT = construct.Struct(
    "physic_msg_timestamp" / construct.Int64sb,
    "logics_msg_timestamp" / construct.Int64sb,
    "index_msg_timestamp" / construct.Int64sb,
    "master_flushed_offset" / construct.Int64sb,
    "confirm_physical_offset" / construct.Int64sb,
)

TIMER_CHECKPOINT = construct.Struct(
    "last_read_time_ms" / construct.Int64sb,
    "last_timer_log_flush_position" / construct.Int64sb,
    "last_timer_queue_offset" / construct.Int64sb,
    "master_timer_queue_offset" / construct.Int64sb,
    "state_version" / construct.Int64sb,
    "timestamp" / construct.Int64sb,
    "counter" / construct.Int64sb,
)
