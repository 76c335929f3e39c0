"""RocketMQ's message store over blocking file I/O, interchangeable with Apache's files; no Twisted, no reactor."""
