"""Sets a process's wall clock ahead by MQ_CLOCK_AHEAD seconds; monotonic clocks stay. Loaded by Python before all else."""

import os
import time

AHEAD_SECONDS = float(os.environ["MQ_CLOCK_AHEAD"])
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + AHEAD_SECONDS
time.time_ns = lambda: _time_ns() + int(AHEAD_SECONDS * 1e9)
