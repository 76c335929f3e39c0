from twisted_mq.broker.long_polling import HeldPull, PullRequestHoldService


def held(
    answers: list[str], name: str, tags: set[int] | None = None, expires_ms: int = 100, up: bool = True
) -> HeldPull:
    def answer() -> str:
        answers.append(name)
        return name

    return HeldPull(0, tags, expires_ms, answer, lambda: up)


def test_arrival_answers_the_queues_pulls_once_after_the_batch() -> None:
    service, answers = PullRequestHoldService(), list[str]()
    service.hold("T", 0, held(answers, "a"))
    service.hold("T", 1, held(answers, "b"))
    for offset in range(3):
        service.message_arriving("T", 0, offset, 0, 1)
    assert answers == []
    service.answer_woken()
    assert (answers, len(service)) == (["a"], 1)
    service.answer_woken()
    assert answers == ["a"]


def test_arrival_with_another_tag_leaves_a_pull_waiting() -> None:
    service, answers = PullRequestHoldService(), list[str]()
    done = service.hold("T", 0, held(answers, "a", {7}))
    service.message_arriving("T", 0, 0, 8, 1)
    service.answer_woken()
    assert answers == []
    service.message_arriving("T", 0, 1, 7, 1)
    service.answer_woken()
    results: list[str] = []
    done.addCallback(results.append)
    assert results == ["a"]


def test_time_limit_answers_and_lost_connections_are_forgotten() -> None:
    service, answers = PullRequestHoldService(), list[str]()
    service.hold("T", 0, held(answers, "late", expires_ms=50))
    service.hold("T", 0, held(answers, "early", expires_ms=200))
    service.hold("T", 0, held(answers, "gone", up=False))
    service.answer_expired(60)
    assert (answers, len(service)) == (["late"], 1)


def test_failing_answer_reaches_its_own_pull_alone() -> None:
    service, answers = PullRequestHoldService(), list[str]()

    def fail() -> str:
        raise ValueError("broken")

    failures: list[BaseException] = []
    service.hold("T", 0, HeldPull(0, None, 100, fail, lambda: True)).addErrback(lambda f: failures.append(f.value))
    service.hold("T", 0, held(answers, "b"))
    service.answer_all()
    assert ([str(one) for one in failures], answers, len(service)) == (["broken"], ["b"], 0)


def test_failing_look_at_what_arrived_concerns_its_own_pull_alone() -> None:
    service, answers = PullRequestHoldService(), list[str]()

    def fail() -> bool:
        raise ValueError("broken")

    failures: list[BaseException] = []
    broken = HeldPull(0, None, 100, fail, lambda: True, found=fail)
    service.hold("T", 0, broken).addErrback(lambda f: failures.append(f.value))
    service.hold("T", 0, held(answers, "b"))
    service.message_arriving("T", 0, 0, 8, 1)
    service.answer_woken()
    assert ([str(one) for one in failures], answers, len(service)) == (["broken"], ["b"], 0)


def test_cancelled_pull_is_answered_no_more() -> None:
    service, answers = PullRequestHoldService(), list[str]()
    cancelled = service.hold("T", 0, held(answers, "a"))
    service.hold("T", 0, held(answers, "b"))
    cancelled.addErrback(lambda reason: answers.append(reason.type.__name__))
    cancelled.cancel()
    assert len(service) == 1
    service.answer_all()
    assert (answers, len(service)) == (["CancelledError", "b"], 0)
