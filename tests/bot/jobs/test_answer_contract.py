"""Jobs of answers keep the order of a conversation and the limits of a process, and lose nothing."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from bot.ports import AnswerJobs
from tests.bot.jobs.conftest import Jobs
from tests.waiting import expect

pytestmark = [  # one process alone has no jobs of answers
    pytest.mark.parametrize("jobs", ["postgres"], indirect=True),
    pytest.mark.needs("postgres"),
]


class Answers:
    """Answers that end when they are let go; `begun` has them in the order in which they began."""

    def __init__(self, *, held: Iterable[int] = ()) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.most_at_once = 0
        self._under_way = 0
        self._gates = {entry_id: asyncio.Event() for entry_id in held}
        self._changed = asyncio.Condition()

    async def answer(self, entry_id: int) -> None:
        self.begun.append(entry_id)
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        await self._notify()
        try:
            if entry_id in self._gates:
                await self._gates[entry_id].wait()
        finally:
            self._under_way -= 1
        self.ended.append(entry_id)
        await self._notify()

    def let_go(self, *entry_ids: int) -> None:
        for entry_id in entry_ids or tuple(self._gates):
            self._gates[entry_id].set()

    async def until(self, done: Callable[[], bool]) -> None:
        async with expect("self._changed.wait_for(done)"), self._changed:
            await self._changed.wait_for(done)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def ask(answers: AnswerJobs, *entry_ids: int, conversation: str = "c") -> None:
    for entry_id in entry_ids:
        await answers.ask_for_answer(entry_id, conversation)


async def test_a_conversation_is_answered_one_by_one_in_the_order_of_asking(jobs: Jobs) -> None:
    answers = Answers()
    async with jobs.answers.work_on_answers(answers.answer, at_once=8):
        await ask(jobs.answers, *range(10))
        await answers.until(lambda: len(answers.ended) == 10)

    assert answers.begun == list(range(10))
    assert answers.most_at_once == 1


async def test_what_was_asked_before_there_was_a_worker_is_answered_by_it(jobs: Jobs) -> None:
    answers = Answers()
    await ask(jobs.answers, 3, 1, 2)
    async with jobs.answers.work_on_answers(answers.answer, at_once=8):
        await answers.until(lambda: len(answers.ended) == 3)

    assert answers.begun == [3, 1, 2]


async def test_conversations_do_not_wait_for_each_other(jobs: Jobs) -> None:
    answers = Answers(held=[1])
    async with jobs.answers.work_on_answers(answers.answer, at_once=8):
        await ask(jobs.answers, 1, 2, conversation="a")
        await ask(jobs.answers, 3, conversation="b")
        await answers.until(lambda: answers.ended == [3])
        answers.let_go()
        await answers.until(lambda: answers.ended == [3, 1, 2])


async def test_so_many_are_answered_at_once_and_no_more(jobs: Jobs) -> None:
    answers = Answers(held=range(6))
    async with jobs.answers.work_on_answers(answers.answer, at_once=2):
        for number in range(6):
            await ask(jobs.answers, number, conversation=f"c{number}")
        await answers.until(lambda: len(answers.begun) == 2)
        answers.let_go()
        await answers.until(lambda: len(answers.ended) == 6)

    assert answers.most_at_once == 2


async def test_a_command_waits_for_no_conversation_and_goes_first(jobs: Jobs) -> None:
    answers = Answers(held=[1])
    async with jobs.answers.work_on_answers(answers.answer, at_once=2):
        await ask(jobs.answers, 1, 2)
        await answers.until(lambda: answers.begun == [1])
        await jobs.answers.ask_for_answer(9, "c", is_command=True)
        await answers.until(lambda: answers.ended == [9])
        answers.let_go()
        await answers.until(lambda: answers.ended == [9, 1, 2])

    later = Answers()
    await ask(jobs.answers, 3, 4)
    await jobs.answers.ask_for_answer(5, "c", is_command=True)
    async with jobs.answers.work_on_answers(later.answer, at_once=1):
        await later.until(lambda: len(later.ended) == 3)
    assert later.begun == [5, 3, 4]


async def test_what_waits_is_not_asked_for_twice_and_what_is_under_way_comes_once_more(jobs: Jobs) -> None:
    answers = Answers(held=[1])
    async with jobs.answers.work_on_answers(answers.answer, at_once=8):
        await ask(jobs.answers, 1)
        await answers.until(lambda: answers.begun == [1])
        await ask(jobs.answers, 1, 2, 1, 2, 2)
        answers.let_go()
        await ask(jobs.answers, 3, conversation="d")
        await answers.until(lambda: len(answers.ended) == 4)

    assert Counter(answers.begun) == {1: 2, 2: 1, 3: 1}


async def test_an_answer_that_fails_is_logged_and_holds_nobody_up(jobs: Jobs, caplog: pytest.LogCaptureFixture) -> None:
    answers = Answers()

    async def fail(entry_id: int) -> None:
        await answers.answer(entry_id)
        if entry_id == 1:
            raise RuntimeError("what nobody expects")

    async with jobs.answers.work_on_answers(fail, at_once=8):
        await ask(jobs.answers, 1, 2)
        await answers.until(lambda: answers.ended == [1, 2])

    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(failures) == 1
    assert "what nobody expects" in caplog.text


async def test_what_a_worker_leaves_is_answered_by_the_next_one_in_order(jobs: Jobs) -> None:
    first, second = Answers(held=[1]), Answers()
    async with jobs.answers.work_on_answers(first.answer, at_once=8):
        await ask(jobs.answers, 1, 2, 3)
        await first.until(lambda: first.begun == [1])
    async with jobs.answers.work_on_answers(second.answer, at_once=8):
        await second.until(lambda: len(second.ended) == 3)

    assert first.ended == []
    assert second.ended == [1, 2, 3]


async def test_names_of_conversations_may_be_long_and_hold_anything(jobs: Jobs) -> None:
    answers = Answers()
    names = ["x" * 50_000, "x" * 49_999 + "y", "nul\0nul", "\ud800 half", ""]
    async with jobs.answers.work_on_answers(answers.answer, at_once=8):
        for number, name in enumerate(names):
            await ask(jobs.answers, number, conversation=name)
        await answers.until(lambda: len(answers.ended) == len(names))
