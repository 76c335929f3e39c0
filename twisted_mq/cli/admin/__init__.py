"""Implements `mqadmin`: Apache's admin tool with the same subcommands, options and output, one module for each subcommand."""
