"""Starts Apache's servers and clients, and this project's, as child processes on free loopback ports."""
