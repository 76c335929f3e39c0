"""Tried with Spark 4.3.0 on Python 3.11 and Java 17.

Here in sessions of one process; on a standalone master with two workers, by spark-submit and over Spark Connect in
interop/test_spark_cluster.py.
"""
