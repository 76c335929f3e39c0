"""The rows of `protocol.registry`, by the part of RocketMQ that needs them."""
