"""Administration of a cluster: requests and their results, on which `mqadmin`, `mq`, the console and `Admin` are built."""
