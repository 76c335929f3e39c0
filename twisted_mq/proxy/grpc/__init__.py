"""A gRPC server on Twisted and h2. Knows nothing of RocketMQ: it is given a table of methods."""
