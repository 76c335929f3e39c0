from collections import Counter

import pytest

from twisted_mq.cli import demo
from twisted_mq.cli.demo import Figures, Sends, check_figures, expected, run_report
from twisted_mq.cli.errors import CliError


def figures(messages: int, statuses: Counter | None = None, received: Counter | None = None) -> Figures:
    batches = demo.batches_for(messages) * demo.BATCH_MESSAGES
    sends = (
        Sends("sent singly", "DemoOrders", statuses or Counter(SEND_OK=messages), 1.0),
        Sends("sent in batches", "DemoMetrics", Counter(SEND_OK=batches), 1.0),
    )
    return Figures(sends, expected(messages) if received is None else received, 2.0)


@pytest.mark.parametrize(("messages", "audit", "paid"), [(1, 33, 0), (2, 34, 1), (100, 132, 33), (3000, 3320, 1000)])
def test_every_group_has_its_count(messages, audit, paid):
    assert expected(messages) == Counter(demo_audit=audit, demo_paid=paid)
    tags = [demo.order(number).tags for number in range(messages)]
    assert tags.count("paid") == paid


def test_figures_that_fit_pass(capsys):
    check_figures(figures(100), 100)
    assert capsys.readouterr().out == "every message sent was consumed exactly once by each group that wanted it\n"


def test_a_send_without_its_promise_is_a_failure():
    with pytest.raises(CliError, match="FLUSH_DISK_TIMEOUT"):
        check_figures(figures(100, statuses=Counter(SEND_OK=99, FLUSH_DISK_TIMEOUT=1)), 100)


@pytest.mark.parametrize("audit", [131, 133], ids=["lost", "twice"])
def test_a_message_lost_or_twice_is_a_failure(audit):
    with pytest.raises(CliError, match=f"'demo_audit': {audit}"):
        check_figures(figures(100, received=Counter(demo_audit=audit, demo_paid=33)), 100)


def test_a_report_that_fails_is_named(tmp_path):
    with pytest.raises(CliError, match="the report ended with exit code"):
        run_report(str(tmp_path / "nowhere"), str(tmp_path / "out"))
