"""Lines of the log are Twisted's events here: so trial fails a test that logs a failure, and tests can capture them."""

from twisted_mq.logs import log_to_twisted

log_to_twisted()
