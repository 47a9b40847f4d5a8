"""The contract of turn-record stores: how answers were found, people's feedback, and how much each person asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.errors import LimitReached, NotAllowed, SilentlyThrottled
from bot.messages import GoalOrder
from bot.storage.answer_records import AnswerRecord, EvidencePlace, ReusableAnswer
from bot.storage.rate_limits import QuestionCounter
from bot.storage.turn_records import FeedbackEntry, TurnRecord
from tests.bot.chat import PLACE, message
from tests.bot.storage.conftest import ChatStore, OpenStore
from tests.fakes.clock import FakeClock

RECORD = TurnRecord(
    repository="shop",
    commit="0" * 40,
    route="fast_path",
    model="o'\"; DROP TABLE turns; -- 漢",
    seconds=1.25,
    files=("src/a.py", "src/b.py"),
    searched=("parse_date",),
    model_calls=2,
    input_tokens=300,
    output_tokens=40,
    person="U1ANN",
    why="named",
    repositories=("shop", "till"),
    watched=True,
    flagged=1,
    tools=("grep",),
    goal=GoalOrder(goal="pytest", arguments={"select": ["a.py"]}, task="x", repository="shop", commit="c0"),
)


async def test_a_record_is_read_as_it_was_kept(store: ChatStore) -> None:
    await store.records.keep("run", "c", RECORD)

    assert await store.records.last("c") == RECORD
    assert await store.records.last_run("c") == "run"


async def test_what_an_answer_came_from_is_kept_masked_and_goes_with_its_turn(
    store: ChatStore, clock: FakeClock
) -> None:
    place = EvidencePlace(path="src/漢.py", start_line=1, end_line=2, use="rejected", symbol="a", score=0.5)
    made = AnswerRecord(
        question="is hunter2 it?", asked_at=1.5, commits={"shop": "c0"}, text="No [1].", citations=("a",),
        at={"kind": "tag"}, evidence=(place,), model="m", mode="tools", replies=[{"task": "t", "text": "\ud800"}],
    )  # fmt: skip
    for run_id in ("1", "2", "3", "4"):
        await store.answers.keep(run_id, f"c{run_id}", made)
        await clock.advance(1)

    (newest, *_) = await store.answers.list_newest(most=2)
    assert (newest.run_id, newest.record.question) == ("4", "is *** it?")
    assert newest.record == replace(made, question="is *** it?")
    await store.records.forget("c1")
    await store.records.forget_question("2")
    await store.records.forget_old(clock.now() - 1.5)
    assert [one.run_id for one in await store.answers.list_newest(most=9)] == ["4"]
    assert await store.answers.find("1") is None


async def test_answers_to_the_same_are_found_until_somebody_finds_one_not_helpful(
    store: ChatStore, clock: FakeClock
) -> None:
    record = AnswerRecord(question="who calls a?", asked_at=1.5, commits={"shop": "c0"}, text="No.")
    for run_id in ("1", "2", "3"):
        answer = ReusableAnswer(meaning="m", place="p", fields={"text": f"{run_id} 漢 \ud800"})
        await store.answers.keep(run_id, f"c{run_id}", record, answer)
        await store.answers.keep(f"{run_id} of another", "c", record)
        await clock.advance(1)

    found = await store.answers.list_reusable("m", "p", most=2)
    assert [(one.fields["text"][0], one.asked_at) for one in found] == [("3", clock.now() - 1), ("2", clock.now() - 2)]
    assert await store.answers.list_reusable("m", "other", most=2) == []
    await store.ratings.rate("2", "ann", "bad")
    await store.ratings.rate("3", "ann", "good")
    assert [one.fields["text"][0] for one in await store.answers.list_reusable("m", "p", most=9)] == ["3"]
    await store.records.forget("c3")
    assert await store.answers.list_reusable("m", "p", most=9) == []


async def test_who_has_lost_a_message_keeps_nothing_of_its_turn(store: ChatStore) -> None:
    here, other = store.open_inbox("here"), store.open_inbox("other")
    entry = await here.store(message(), "c")
    assert entry is not None
    late = await here.claim(entry.id)
    assert late is not None
    await other.take_from("here")
    assert not await store.records.keep(late.run_id, "c", RECORD, held=late)
    now = await other.claim(entry.id)
    assert now is not None
    assert await store.records.keep(now.run_id, "c", RECORD, held=now)

    assert not await store.records.keep(late.run_id, "c", replace(RECORD, seconds=9.0), held=late)

    assert await store.records.last("c") == RECORD


async def test_an_answer_to_what_was_edited_meanwhile_is_not_the_newest_turn(store: ChatStore) -> None:
    inbox = store.open_inbox("here")
    entry = await inbox.store(message(), "c")
    assert entry is not None
    before = await inbox.claim(entry.id)
    assert before is not None
    await inbox.revise(message("in other words"))
    after = await inbox.claim(entry.id)
    assert after is not None
    await store.records.keep(after.run_id, "c", RECORD, held=after)

    assert not await store.records.keep(before.run_id, "c", RECORD, held=before)

    assert await store.records.last_run("c") == after.run_id


async def test_the_turns_since_a_time_come_newest_first_and_no_more_than_so_many(
    store: ChatStore, clock: FakeClock
) -> None:
    for run in ("old", "first", "second"):
        await store.records.keep(run, f"c-{run}", replace(RECORD, found=run == "first"))
        await clock.advance(10)

    recent = await store.records.recent(since=clock.now() - 25, most=5)
    newest = await store.records.recent(since=0, most=1)

    assert [(each.run_id, each.conversation, each.record.found) for each in recent] == [
        ("second", "c-second", False),
        ("first", "c-first", True),
    ]
    assert [each.run_id for each in newest] == ["second"]


async def test_of_a_conversation_without_turns_nothing_is_known(store: ChatStore) -> None:
    await store.records.keep("run", "c", RECORD)

    assert await store.records.last("another") is None
    assert await store.records.last_run("another") == ""


async def test_the_newest_turn_is_the_one_that_was_kept_last_also_within_one_moment(
    store: ChatStore, clock: FakeClock
) -> None:
    await store.records.keep("b", "c", RECORD)
    await store.records.keep("a", "c", replace(RECORD, seconds=2.0))
    assert await store.records.last_run("c") == "a"
    await clock.advance(1)
    await store.records.keep("b", "c", replace(RECORD, seconds=3.0))

    assert await store.records.last_run("c") == "b"
    assert await store.records.last("c") == replace(RECORD, seconds=3.0)


async def test_a_later_opinion_replaces_the_earlier_one_of_the_same_person(store: ChatStore, clock: FakeClock) -> None:
    await store.records.keep("run", "c", RECORD)
    await store.ratings.rate("run", "ann", "good")
    await store.ratings.rate("run", "ben", "good")
    await clock.advance(1)
    await store.ratings.rate("run", "ann", "bad")

    assert await store.ratings.feedback() == [
        FeedbackEntry(run_id="run", person="ben", opinion="good", at=clock.now() - 1, record=RECORD),
        FeedbackEntry(run_id="run", person="ann", opinion="bad", at=clock.now(), record=RECORD),
    ]
    assert [each.person for each in await store.ratings.feedback(since=clock.now())] == ["ann"]


async def test_opinions_outlive_the_turns_of_a_conversation_that_is_forgotten(
    store: ChatStore, clock: FakeClock
) -> None:
    await store.records.keep("run", "c", RECORD)
    await store.records.keep("other", "d", RECORD)
    await store.ratings.rate("run", "ann", "good")

    await store.records.forget("c")

    assert await store.records.last("c") is None
    assert await store.records.last("d") == RECORD
    assert await store.ratings.feedback() == [
        FeedbackEntry(run_id="run", person="ann", opinion="good", at=clock.now(), record=None)
    ]


async def test_turns_and_opinions_of_before_a_time_are_forgotten(store: ChatStore, clock: FakeClock) -> None:
    await store.records.keep("old", "c", RECORD)
    await store.ratings.rate("old", "ann", "good")
    await store.ratings.rate("old", "ben", "bad")
    await clock.advance(100)
    await store.records.keep("young", "d", RECORD)
    await store.ratings.rate("young", "ann", "good")

    assert await store.records.forget_old(clock.now() - 50) == 2

    assert await store.records.last("c") is None
    assert [each.run_id for each in await store.ratings.feedback()] == ["young"]


async def test_what_was_kept_is_there_after_a_restart(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.records.keep("run", "c", RECORD)
        await store.ratings.rate("run", "ann", "good")
    async with open_store() as later:
        assert await later.records.last("c") == RECORD
        assert [each.opinion for each in await later.ratings.feedback()] == ["good"]


async def refusal(limiter: QuestionCounter, **changes: Any) -> type[NotAllowed] | None:
    """How one more question is refused, if it is."""
    try:
        await limiter.count(message(**changes))
    except NotAllowed as error:
        return type(error)
    return None


async def test_questions_above_the_limit_are_refused_and_a_flood_of_them_in_silence(store: ChatStore) -> None:
    assert [await refusal(store.limiter) for _ in range(5)] == [
        None,
        None,
        LimitReached,
        LimitReached,
        SilentlyThrottled,
    ]
    assert await refusal(store.limiter, kind="command") is LimitReached
    with pytest.raises(NotAllowed, match=r"asked 2 questions this minute. Ask again in \d+ seconds"):
        await store.limiter.count(message(kind="command"))


async def test_people_are_counted_apart_and_as_one_wherever_they_ask(store: ChatStore) -> None:
    assert [await refusal(store.limiter) for _ in range(3)][-1] is LimitReached

    assert await refusal(store.limiter, author="ben") is None
    assert await refusal(store.limiter, place=replace(PLACE, platform="other")) is None
    assert await refusal(store.limiter, place=replace(PLACE, workspace="V", channel="D")) is LimitReached


async def test_a_new_minute_begins_anew_and_the_day_goes_on(store: ChatStore, clock: FakeClock) -> None:
    counted = []
    for _ in range(3):
        counted += [await refusal(store.limiter) for _ in range(2)]
        await clock.advance(60)

    assert counted == [None, None, None, None, None, LimitReached]
    await clock.advance(86_400)
    await store.limiter.forget_old()
    assert await refusal(store.limiter) is None


async def test_commands_are_counted_apart_from_questions(store: ChatStore) -> None:
    for _ in range(6):
        await store.limiter.count_command(message())
    with pytest.raises(SilentlyThrottled, match="more than 6 commands this minute"):
        await store.limiter.count_command(message())

    await store.limiter.count_command(message(kind="command"))
    assert await refusal(store.limiter) is None


async def test_lookups_of_programs_are_counted_apart_and_there_are_many(store: ChatStore) -> None:
    for _ in range(60):
        await store.limiter.count_lookup(message())
    with pytest.raises(LimitReached, match="60 things this minute"):
        await store.limiter.count_lookup(message())

    assert await refusal(store.limiter) is None


async def test_what_was_asked_counts_in_every_process_and_after_a_restart(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as other:
        assert await refusal(one.limiter) is None
        assert await refusal(other.limiter) is None
    async with open_store() as later:
        assert await refusal(later.limiter) is LimitReached
