"""Parts of the public classes that are the same in twisted_mq.aio and twisted_mq.blocking."""
