"""The contract of stores of followed answers: places move on, and each change is shown by one process, once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agent import StoredQuery
from agent.evidence.requests import request_lookup
from bot.messages import Button, MessageContent
from bot.storage.living_answers import DAY, STUCK_SECONDS, AnswerEvidence, CitedPlace, LivingAnswer
from indexer.types import FollowedLines
from tests.bot.storage.conftest import ChatStore
from tests.fakes.clock import FakeClock

OLD, NEW = "a" * 40, "b" * 40
CONTENT = MessageContent(
    text="\N{SNOWMAN} [1]", footer="at aaa", buttons=(Button(action="good", label="+", value="r"),)
)
PLACE = CitedPlace(
    mark=1, repository="shop", commit=OLD, path="a.py", start_line=3, end_line=5, words=frozenset({"send"})
)
QUERY = StoredQuery(
    request=request_lookup("callers", "Shop.send", reasoning=""), items=("a.py order",), totals={"caller": 1}
)
EVIDENCE = AnswerEvidence(commits={"shop": OLD}, places=[PLACE], queries={"shop": [QUERY]})


def make_answer(name: str, tail: str = "first") -> LivingAnswer:
    return LivingAnswer(
        run_id=f"{name:-<20}{tail}", entry=7, content=CONTENT, question="who calls send?", commits={"shop": OLD}
    )


async def keep(store: ChatStore, *names: str) -> list[LivingAnswer]:
    answers = [make_answer(name) for name in names]
    for answer in answers:
        await store.living.keep(answer, "conversation", EVIDENCE)
    return answers


async def test_an_answer_is_kept_until_its_message_has_another_one(store: ChatStore) -> None:
    (answer,) = await keep(store, "one")
    assert await store.living.find(answer.run_id) == answer
    (place,), (query,) = await store.living.list_places(answer.run_id), await store.living.list_queries("shop")
    assert (place.cited, query.query, query.query.name) == (PLACE, QUERY, "send")

    later = make_answer("one", "later")
    await store.living.keep(later, "conversation", replace(EVIDENCE, queries=None))

    assert await store.living.find(answer.run_id) == later
    assert await store.living.list_queries("shop") == []


async def test_places_are_followed_from_where_they_are_known(store: ChatStore) -> None:
    await keep(store, "one", "two")
    assert await store.living.list_lagging_commits("shop") == [OLD]
    assert await store.living.read_followed_commit("shop") == ""
    one, _ = await store.living.list_touched_places("shop", OLD, ["a.py", "b.py"])

    moved = replace(one, now=FollowedLines(path="b.py", start_line=4, end_line=6, fate="moved"))
    await store.living.advance("shop", NEW, [moved], [], lagging=[OLD])

    assert await store.living.list_lagging_commits("shop") == []
    assert await store.living.read_followed_commit("shop") == NEW
    assert await store.living.list_touched_places("shop", "", ["b.py"]) == [moved]
    assert len(await store.living.list_touched_places("shop", "", ["a.py"])) == 1


async def test_a_change_is_due_until_one_process_has_shown_it(store: ChatStore, clock: FakeClock) -> None:
    (answer,) = await keep(store, "one")
    key = answer.run_id[:20]
    assert await store.living.note_changes(key, NEW, ["1 of 1 cited places changed", "`a.py:3-5`"])
    assert not await store.living.note_changes(key, "c" * 40, ["1 of 1 cited places changed", "`a.py:3-5`"])
    (due,) = await store.living.list_due(per_hour=20, most=9)
    assert (due.since, due.changes[0]) == (NEW, "1 of 1 cited places changed")

    assert await store.living.claim_edit(due, per_hour=20)
    assert not await store.living.claim_edit(due, per_hour=20)
    await clock.advance(STUCK_SECONDS + 1)  # the process died that has claimed it
    assert await store.living.claim_edit(due, per_hour=20)
    await store.living.end_edit(due)
    assert await store.living.list_due(per_hour=20, most=9) == []

    assert await store.living.note_changes(key, NEW, [])
    assert await store.living.list_due(per_hour=20, most=9) == []  # it was edited today
    await clock.advance(DAY + 1)
    (due,) = await store.living.list_due(per_hour=20, most=9)
    assert (due.since, due.changes) == ("", ())
    assert await store.living.claim_edit(due, per_hour=20)


async def test_no_more_answers_are_edited_in_an_hour_than_allowed(store: ChatStore, clock: FakeClock) -> None:
    answers = await keep(store, "one", "two", "three")
    for answer in answers:
        await store.living.note_changes(answer.run_id[:20], NEW, ["its list changed", "more"])

    taken = await asyncio.gather(*(store.living.claim_edit(answer, per_hour=2) for answer in answers))

    assert sorted(taken) == [False, True, True]
    (left,) = (answer for answer, is_taken in zip(answers, taken, strict=True) if not is_taken)
    for answer in answers:
        await store.living.end_edit(answer)
    await clock.advance(3_601)
    assert [one.run_id for one in await store.living.list_due(per_hour=20, most=9)] == [left.run_id]
    assert await store.living.claim_edit(left, per_hour=2)


async def test_what_counts_most_is_edited_first_and_links_take_half(store: ChatStore, clock: FakeClock) -> None:
    names = ("links", "old", "watched", "pinned", "new")
    for name in names:
        (answer,) = await keep(store, name)
        changes = [] if name == "links" else ["its list changed", "more"]
        await store.living.note_changes(answer.run_id[:20], NEW, changes, {"https://a": "https://b"})
        await clock.advance(1)
    assert await store.living.mark(make_answer("watched").run_id, watch=1)
    assert await store.living.mark(make_answer("pinned").run_id, pinned=1)
    assert not await store.living.mark(make_answer("nobody").run_id, watch=1)

    listed = await store.living.list_due(per_hour=4, most=9)
    assert [one.run_id.rstrip("first").rstrip("-") for one in listed] == ["pinned", "watched", "new", "old", "links"]
    taken = [await store.living.claim_edit(one, per_hour=4) for one in (listed[0], listed[1], listed[4], listed[2])]
    assert taken == [True, True, False, True]  # two of four are for links at most
    assert await store.living.mark(make_answer("watched").run_id, watch=0)
    await store.living.end_edit(listed[1], told=True)
    assert not (await store.living.find(listed[1].run_id) or listed[1]).is_watched


async def test_a_watched_answer_that_is_given_again_stays_watched(store: ChatStore) -> None:
    (answer,) = await keep(store, "one")
    await store.living.mark(answer.run_id, watch=1)
    await store.living.note_changes(answer.run_id[:20], NEW, ["its list changed", "more"])
    assert await store.living.claim_edit(answer, per_hour=20)
    await store.living.end_edit(answer, told=True)
    assert [one.is_watched for one in await store.living.list_due(per_hour=20, most=9)] == []

    await keep(store, "one")

    kept = await store.living.find(answer.run_id)
    assert kept is not None
    assert kept.is_watched


async def test_what_is_forgotten_leaves_nothing_behind(store: ChatStore, clock: FakeClock) -> None:
    one, two, three = await keep(store, "one", "two", "three")
    await store.living.forget_run(one.run_id)
    assert [await store.living.find(each.run_id) for each in (one, two, three)] == [None, two, three]

    await store.living.forget_old(clock.now() + 1)

    assert [await store.living.find(each.run_id) for each in (two, three)] == [None, None]
    assert await store.living.list_queries("shop") == []
