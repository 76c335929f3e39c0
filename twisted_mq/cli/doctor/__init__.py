"""Implements `mq doctor`: checks a cluster and a broker's files on this machine, and says what to do about its findings."""
