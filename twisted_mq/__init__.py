"""Contains everything of RocketMQ that runs on Twisted: servers, client library, commands."""
