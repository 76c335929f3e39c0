"""What the Spark source and sink promise, shown at length: kills, latency, rates. `make spark-proof` runs all of it.

Each program is bounded, says in one line what it saw, and ends with 1 where a promise is broken.
"""
