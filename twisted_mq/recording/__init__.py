"""Records remoting traffic with a proxy, for `mq record`."""
