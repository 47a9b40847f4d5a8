"""Questions in the records of turns: kept by those who mask them, bounded, and dropped without their records."""

from __future__ import annotations

from dataclasses import replace

from bot.storage.turn_records import TurnRecord, TurnRecordStore
from tests.bot.storage.conftest import OpenStore
from tests.fakes.clock import FakeClock

RECORD = TurnRecord(
    repository="demo", commit="0" * 40, route="fast", model=None, seconds=1.0, question="who calls send?",
    lookup="callers",
)  # fmt: skip


async def test_without_a_mask_neither_question_nor_lookup_is_kept(open_store: OpenStore, clock: FakeClock) -> None:
    async with open_store() as store:
        await store.records.keep("a", "c", RECORD)
        records = TurnRecordStore(store.database, clock)

        assert await records.last("c") == replace(RECORD, question="", lookup="")
        assert await records.list_questions() == []


async def test_a_question_is_kept_masked_with_its_lookup_and_worst_rating(
    open_store: OpenStore, clock: FakeClock
) -> None:
    async with open_store() as store:
        records = TurnRecordStore(store.database, clock, mask_question=str.upper)
        for run_id in ("a", "b"):
            await records.keep(run_id, "c", RECORD)
        for person, opinion in (("ann", "good"), ("ben", "bad")):
            await records.rate("b", person, "good" if opinion == "good" else "bad")

        kept = await records.list_questions()
        assert [(one.text, one.lookup, one.opinion) for one in kept] == [
            ("WHO CALLS SEND?", "callers", None),
            ("WHO CALLS SEND?", "callers", "bad"),
        ]
        assert await records.list_questions(since=clock.now() + 1) == []


async def test_questions_that_are_old_or_too_many_go_and_their_records_stay(
    open_store: OpenStore, clock: FakeClock
) -> None:
    async with open_store() as store:
        records = TurnRecordStore(store.database, clock, mask_question=str)
        for number in range(4):
            await clock.advance(10.0)
            await records.keep(str(number), f"c{number}", replace(RECORD, question=f"question {number}"))

        await records.forget_old_questions(clock.now() - 25, most=2)
        assert [one.text for one in await records.list_questions()] == ["question 2", "question 3"]
        await records.forget_question("3")
        await records.forget_question("never kept")
        assert [one.text for one in await records.list_questions()] == ["question 2"]
        assert await records.last("c3") == replace(RECORD, question="", lookup="")
        await records.forget_old_questions(clock.now() + 1)
        assert await records.list_questions() == []
