"""The commit log: all records of all topics in the order of arrival."""
