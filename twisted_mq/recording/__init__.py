"""A proxy that records remoting traffic: what `mq record` runs."""
