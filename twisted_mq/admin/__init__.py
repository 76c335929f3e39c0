"""What operators ask of a cluster, whoever shows it: requests and what they find. `mqadmin`, `mq` and the console stand on it."""
