"""Lines of the log are Twisted's events here: so trial fails a test that logs a failure, and tests can capture them.

All lines are written, however often they repeat: a run starts and stops the same servers a hundred times a minute.
"""

from collections.abc import Callable

from twisted_mq import logs
from twisted_mq.log_repeats import Cause, LogRepeats


class EveryLine(LogRepeats):
    """Leaves out no line."""

    def takes(self, cause: Cause, text: Callable[[], str]) -> bool:
        return True


logs.repeats = EveryLine()
logs.log_to_twisted()
