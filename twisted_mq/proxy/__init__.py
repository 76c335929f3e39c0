"""The gRPC proxy: serves RocketMQ's 5.x clients (apache.rocketmq.v2.MessagingService)."""
