"""Long proofs of the Spark source and sink: kills, latency, rates. `make spark-proof` runs all of it.

Each program is bounded, prints its results in one line, and ends with 1 if a promise is broken.
"""
