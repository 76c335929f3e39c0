"""The files of the messages that wait for their time."""
