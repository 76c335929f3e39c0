"""Runs the same as a script, for spark-submit and `python -m twisted_mq.cli.spark`."""

from twisted_mq.cli.mq import main

if __name__ == "__main__":
    import sys

    sys.argv.insert(1, "spark")
    main()
