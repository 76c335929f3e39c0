"""Jobs from store directories to findings: what `mq spark JOB` runs."""
