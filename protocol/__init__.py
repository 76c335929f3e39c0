"""The remoting protocol and the record formats of RocketMQ: bytes in, values out; no I/O, no clock, no Twisted."""
