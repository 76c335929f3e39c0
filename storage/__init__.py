"""A RocketMQ message store over blocking file I/O, interchangeable with Apache's files. It uses no Twisted and no reactor."""
