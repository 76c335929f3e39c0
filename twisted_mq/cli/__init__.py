"""Implements the commands `mq` and `mqadmin`. Only functions in here import the reactor; heavy modules are loaded when needed."""
