"""Takes a broker's part in strictly ordered queues: when it takes sends, what it hands out, what it reports to the
coordinator.
"""
