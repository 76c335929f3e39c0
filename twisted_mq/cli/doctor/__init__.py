"""`mq doctor`: looks at a cluster and at a broker's files on this machine, and says what to do about what it finds."""
