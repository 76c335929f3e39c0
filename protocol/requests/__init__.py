"""The rows of `twisted_mq.protocol.requests.registry`, by the part of RocketMQ that needs them."""
