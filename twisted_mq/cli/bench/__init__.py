"""`mq bench`: a bounded load on a cluster, and how long its answers took."""
