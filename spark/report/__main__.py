"""`python -m twisted_mq.spark.report STORE_DIR --out DIR`."""

from twisted_mq.spark.report.store_report import main

main()
