"""A gRPC server on Twisted. Knows nothing of RocketMQ: it is given a table of methods."""
