"""Reads RocketMQ properties files into one options class for each daemon."""
