"""The pipeline of an ordered queue: by itself, and against brokers that follow the rules, over every kind of failure."""

from __future__ import annotations

import collections
import random

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from twisted_mq.client.ordered.pipeline import Pipeline, Waiting, Window


def opened(*sizes: int, window: Window | None = None) -> Pipeline[int]:
    pipeline: Pipeline[int] = Pipeline(window or Window())
    for item, size in enumerate(sizes):
        pipeline.add(item, size)
    pipeline.begin()
    return pipeline


def sequences(waiting: list[Waiting[int]]) -> list[int]:
    return [one.sequence for one in waiting]


def test_nothing_is_sent_before_the_first_run():
    pipeline: Pipeline[str] = Pipeline(Window())
    pipeline.add("a", 1)
    assert pipeline.take() == []
    pipeline.begin()
    assert [(one.item, one.sequence) for one in pipeline.take()] == [("a", 1)]
    assert pipeline.take() == []


def test_window_bounds_messages_and_bytes_and_lets_one_large_message_through():
    pipeline = opened(10, 10, 10, 10, 10, window=Window(messages=3, size_bytes=25))
    first, second = pipeline.take()
    assert pipeline.take() == []
    assert pipeline.stored(first, 1) == [first]
    assert sequences(pipeline.take()) == [3]
    assert pipeline.size_bytes == 40
    assert sequences(opened(99, 1, window=Window(messages=3, size_bytes=25)).take()) == [1]
    assert sequences(opened(0, 0, 0, 0, window=Window(messages=3, size_bytes=25)).take()) == [1, 2, 3]
    assert pipeline.stored(second, 1) == [second]


def test_message_is_done_when_all_before_it_are_stored():
    pipeline = opened(1, 1, 1)
    first, second, third = pipeline.take()
    assert pipeline.stored(second, 1) == []
    assert pipeline.stored(first, 1) == [first, second]
    assert pipeline.stored(third, 1) == [third]
    assert (len(pipeline), pipeline.size_bytes) == (0, 0)


def test_refusal_ends_the_run_once_and_the_next_begins_at_the_first_not_stored():
    pipeline = opened(1, 1, 1)
    first, second, _ = pipeline.take()
    pipeline.stored(first, 1)
    assert pipeline.refused(1)
    assert not pipeline.refused(1)
    assert pipeline.take() == []
    pipeline.begin()
    assert not pipeline.refused(1), "of the run before"
    assert sequences(pipeline.take()) == [2, 3]
    assert (pipeline.base, pipeline.run, second.run) == (2, 2, 2)


def test_late_acknowledgement_of_an_earlier_run_counts():
    pipeline = opened(1, 1, 1)
    first, second, _ = pipeline.take()
    pipeline.refused(1)
    pipeline.begin()
    assert pipeline.stored(second, 1) == []
    assert pipeline.stored(first, 1) == [first, second]
    assert sequences(pipeline.take()) == [3]
    assert pipeline.base == 3


def test_messages_that_were_never_sent_give_their_numbers_back():
    pipeline = opened(1, 1, 1, window=Window(messages=1))
    pipeline.take()
    second = list(pipeline)[1]
    assert sequences(pipeline.give_up(second)) == [2, 3]
    assert pipeline.add(7, 1).sequence == 2


def test_messages_that_were_sent_do_not_and_need_another_leader_term():
    pipeline = opened(1, 1, 1)
    pipeline.take()
    second = list(pipeline)[1]
    assert sequences(pipeline.give_up(second)) == [2, 3]
    pipeline.add(7, 1)
    pipeline.begin()
    assert pipeline.is_spent
    assert pipeline.take() == []
    pipeline.renew()
    pipeline.begin()
    assert [(one.item, one.sequence) for one in pipeline.take()] == [(0, 1), (7, 2)]


def test_new_leader_term_numbers_from_one_again():
    pipeline = opened(1, 1, 1)
    first, _, third = pipeline.take()
    pipeline.stored(first, 1)
    pipeline.stored(third, 1)
    pipeline.renew()
    assert pipeline.take() == []
    pipeline.begin()
    assert [(one.item, one.sequence, one.stored) for one in pipeline.take()] == [(1, 1, False), (2, 2, False)]
    assert pipeline.add(7, 1).sequence == 3


def test_acknowledgement_of_an_earlier_leader_term_does_not_count():
    pipeline = opened(1)
    (first,) = pipeline.take()
    pipeline.renew()
    pipeline.begin()
    assert pipeline.stored(first, 1) == []
    assert pipeline.take() == [first]
    assert pipeline.stored(first, 2) == [first]


def test_acknowledgement_of_what_was_given_up_finishes_nothing():
    pipeline = opened(1, 1)
    first, second = pipeline.take()
    assert pipeline.give_up() == [first, second]
    assert pipeline.stored(first, 1) == []
    assert (len(pipeline), pipeline.size_bytes) == (0, 0)


@attrs.define(eq=False)
class Frame:
    """A send on its way, then its answer: None while it is none, True where it was stored."""

    epoch: int
    leader: int
    base: int
    sequence: int
    waiting: Waiting[int]
    run: int
    answer: bool | None = None


class Head:
    """Model of a broker with ordered sends in one epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.log: list[int] = []
        self.leader = 0
        self.last: int | None = None
        self.stored: set[tuple[int, int]] = set()

    def takes(self, frame: Frame) -> bool:
        if frame.leader < self.leader:
            return False
        if frame.leader > self.leader:
            self.leader, self.last = frame.leader, None
        expected = frame.base if self.last is None else max(self.last + 1, frame.base)
        if frame.sequence == expected:
            self.log.append(frame.waiting.item)
            self.last = expected
            self.stored.add((frame.leader, expected))
        return (frame.leader, frame.sequence) in self.stored


class ProducerAndHeads(RuleBasedStateMachine):
    """A producer, heads that follow each other, connections that keep their order and break."""

    def __init__(self) -> None:
        super().__init__()
        self.pipeline: Pipeline[int] = Pipeline(Window(messages=4, size_bytes=10))
        self.leader = 1
        self.heads = [Head(1)]
        self.known_epoch = 1
        self.requests: list[collections.deque[Frame]] = [collections.deque()]
        self.answers: list[collections.deque[Frame]] = [collections.deque()]
        self.added = 0
        self.given_up: set[int] = set()
        self.done: list[int] = []

    @rule(sizes=st.lists(st.integers(0, 12), min_size=1, max_size=3))
    def add(self, sizes: list[int]) -> None:
        for size in sizes:
            self.pipeline.add(self.added, size)
            self.added += 1
        self.send()

    @rule()
    def learn_of_the_head_and_begin(self) -> None:
        self.known_epoch = self.heads[-1].epoch
        self.pipeline.begin()
        self.send()

    @rule()
    def send(self) -> None:
        for waiting in self.pipeline.take():
            frame = Frame(
                self.known_epoch, self.leader, self.pipeline.base, waiting.sequence, waiting, self.pipeline.run
            )
            self.requests[-1].append(frame)

    @rule(which=st.integers(0, 9), count=st.integers(1, 5))
    def arrive(self, which: int, count: int) -> None:
        """Requests of any connection, also of one that the producer gave up: they were delayed."""
        number = which % len(self.requests)
        for _ in range(min(count, len(self.requests[number]))):
            frame = self.requests[number].popleft()
            head = self.heads[-1]
            frame.answer = frame.epoch == head.epoch and head.takes(frame)
            self.answers[number].append(frame)

    @rule(which=st.integers(0, 9), count=st.integers(1, 5))
    def answer(self, which: int, count: int) -> None:
        number = which % len(self.answers)
        for _ in range(min(count, len(self.answers[number]))):
            frame = self.answers[number].popleft()
            if frame.answer:
                self.done += [one.item for one in self.pipeline.stored(frame.waiting, frame.run)]
            else:
                self.pipeline.refused(frame.run)

    @rule(arrives=st.booleans())
    def break_the_connection(self, arrives: bool) -> None:
        """Answers are lost; requests may arrive much later."""
        for frame in (*self.requests[-1], *self.answers[-1]):
            self.pipeline.refused(frame.run)
        if not arrives:
            self.requests[-1].clear()
        self.answers[-1] = collections.deque()
        self.requests.append(collections.deque())
        self.answers.append(collections.deque())

    @rule()
    def change_the_head(self) -> None:
        """Answers that were not given when the term was sealed are refusals."""
        for answers in self.answers:
            for frame in answers:
                frame.answer = False
        self.heads.append(Head(self.heads[-1].epoch + 1))

    @precondition(lambda self: len(self.pipeline))
    @rule(which=st.integers(0, 9))
    def give_up_and_go_on(self, which: int) -> None:
        first = list(self.pipeline)[which % len(self.pipeline)]
        self.given_up.update(one.item for one in self.pipeline.give_up(first))
        self.add([1])
        if self.pipeline.is_spent:
            self.lead_anew()
        self.learn_of_the_head_and_begin()

    @rule()
    def lead_anew(self) -> None:
        self.leader += 1
        self.pipeline.renew()

    @invariant()
    def what_is_consumed_is_in_order(self) -> None:
        seen = list(dict.fromkeys(item for head in self.heads for item in head.log))
        assert seen == sorted(seen)
        assert self.done == sorted(self.done)
        assert set(self.done) <= set(seen)
        numbers = {number for head in self.heads for number in head.stored}
        for leader, sequence in numbers:
            assert sequence == 1 or (leader, sequence - 1) in numbers, "a gap in the stores"
        passed_over = set(range(max(seen, default=0))) - set(seen)
        assert passed_over <= self.given_up

    def teardown(self) -> None:
        """All heals: everything that was not given up is stored, in order."""
        self.lead_anew()
        for _ in range(self.added):
            self.learn_of_the_head_and_begin()
            for requests, answers in zip(self.requests, self.answers, strict=True):
                while requests:
                    frame = requests.popleft()
                    frame.answer = frame.epoch == self.heads[-1].epoch and self.heads[-1].takes(frame)
                    answers.append(frame)
                while answers:
                    frame = answers.popleft()
                    if frame.answer:
                        self.done += [one.item for one in self.pipeline.stored(frame.waiting, frame.run)]
        self.what_is_consumed_is_in_order()
        assert set(self.done) | self.given_up == set(range(self.added))


TestProducerAndHeads = ProducerAndHeads.TestCase
TestProducerAndHeads.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)


def history(seed: int) -> None:
    chance = random.Random(seed)
    world = ProducerAndHeads()
    steps = (
        lambda: world.add([chance.randrange(13) for _ in range(chance.randrange(1, 4))]),
        world.learn_of_the_head_and_begin,
        world.send,
        lambda: world.arrive(chance.randrange(10), chance.randrange(1, 6)),
        lambda: world.answer(chance.randrange(10), chance.randrange(1, 6)),
        lambda: world.break_the_connection(chance.random() < 0.5),
        world.change_the_head,
        lambda: len(world.pipeline) and world.give_up_and_go_on(chance.randrange(10)),
        world.lead_anew,
    )
    for step in chance.choices(steps, weights=(4, 4, 1, 4, 4, 1, 1, 1, 1), k=50):
        step()
        world.what_is_consumed_is_in_order()
    world.teardown()


def test_thousands_of_random_histories():
    for seed in range(3_000):
        history(seed)
