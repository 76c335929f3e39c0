"""Configuration: RocketMQ properties files read into one options class for each daemon."""
