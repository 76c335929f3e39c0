"""A week of operations with real processes: see tests.week.run."""
