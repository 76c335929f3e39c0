"""`mq order`: strictly ordered topics: declare them, look at them, plan the maintenance of their broker groups."""
