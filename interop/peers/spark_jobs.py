"""Every job of `mq spark`, one after the other in one session of a Connect server.

SPARK_REMOTE=sc://localhost:15002 python spark_jobs.py PLANTED RECORDED NAMESERVER FOLDER

PLANTED and RECORDED are stores, what FOLDER gets is an export. Prints a line of JSON for each job: its name, exit code and
figures, or what it said instead.
"""

import json
import sys

from click.testing import CliRunner
from pyspark.sql import SparkSession

from twisted_mq.cli.mq import mq
from twisted_mq.spark.pack import bring_pack


def main(planted: str, recorded: str, name_server: str, folder: str) -> None:
    session = SparkSession.builder.getOrCreate()
    bring_pack(session)
    try:
        for line in lines(planted, recorded, name_server, folder):
            print(json.dumps([line[0], *said(line)]), flush=True)
    finally:
        session.stop()


def lines(planted: str, recorded: str, name_server: str, folder: str) -> list[list[str]]:
    """Return the arguments after `mq spark`."""
    return [
        ["export", planted, "--out", f"{folder}/exported"],
        ["replay", planted, "--topic", "Orders", "--to", "Copies", "--namesrv", name_server],
        ["audit", recorded],
        ["search", recorded, "--key", "bad2"],
        ["dead-letters", planted],
        ["unfinished", planted],
        ["lag", planted],
        ["latency", planted, "--by", "topic,hour,host"],
        ["gaps", planted],
        ["duplicates", planted],
        ["volume", planted],
        ["retention", planted, "--hours", "0,48"],
        ["order", planted],
    ]


def said(line: list[str]) -> list[object]:
    """Exit code, and figures or an error."""
    done = CliRunner().invoke(mq, ["spark", *line, "--json"])
    try:
        return [done.exit_code, json.loads(done.stdout.splitlines()[-1])["figures"]]
    except (ValueError, IndexError):
        return [done.exit_code, f"{done.output} {done.exception!r}"]


main(*sys.argv[1:])
