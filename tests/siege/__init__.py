"""All hostile cases at once beside an honest load of every kind: `python -m tests.siege.run`."""
