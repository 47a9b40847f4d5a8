"""Conversations that are moved to another database continue there where they were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from langgraph.types import Command

from agent.errors import CheckpointError
from agent.persistence.conversation_saver import ConversationSaver
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.postgres import conversation_copy
from agent.persistence.postgres.conversation_copy import ConversationCounts, copy_conversations
from tests.agent.persistence.conftest import IMPLEMENTATIONS
from tests.agent.persistence.test_saver_contract import build_echo, build_talk, put_unclaimed, read, run
from tests.needs import mark_needs

pytestmark = pytest.mark.exhaustive

WAYS = [("sqlite", "postgres"), ("postgres", "sqlite"), ("sqlite", "sqlite"), ("postgres", "postgres")]
Both = tuple[ConversationSaver, ConversationSaver]


def tell_nobody(done: int, total: int) -> None:
    assert 0 < done <= total


@pytest_asyncio.fixture(params=[pytest.param(way, marks=mark_needs(*way)) for way in WAYS], ids="-".join)
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Both]:
    async with AsyncExitStack() as stack:
        opened = []
        for number, engine in enumerate(request.param):
            folder = tmp_path / str(number)
            opening = await stack.enter_async_context(IMPLEMENTATIONS[engine](folder))
            opened.append(await stack.enter_async_context(opening()))
        yield opened[0], opened[1]


async def test_everything_is_copied_and_counted(both: Both) -> None:
    source, target = both
    for text in ("first", "second"):
        await run(source, build_echo(), {"said": [text]})
    await put_unclaimed(source, "of an earlier version", "before")
    await EvidenceStore(source).of("t").keep("e1", "text")
    await EvidenceStore(source).of("left").keep("e1", "a \0 within")

    counts = await copy_conversations(source, target, tell_nobody)

    assert counts == ConversationCounts(conversations=3, evidence=2)
    assert await read(target) == await read(source) == {"said": ["first", "second"]}
    assert await read(target, "of an earlier version") == {"said": ["before"]}
    assert await EvidenceStore(target).of("t").texts(["e1"]) == {"e1": "text"}


async def test_a_run_that_waits_for_a_person_goes_on_in_the_other_database(both: Both) -> None:
    source, target = both
    await run(source, build_talk(), {"said": []})

    await copy_conversations(source, target, tell_nobody)

    assert await run(target, build_talk(), Command(resume="the second")) == {
        "said": ["begun", "the second"],
        "calls": 1,
    }


async def test_the_claims_of_conversations_are_copied_with_their_times_and_no_number_comes_back(both: Both) -> None:
    source, target = both
    claims = [await source.claim_run(thread) for thread in ("t", "begun")]

    assert (await copy_conversations(source, target, tell_nobody)).conversations == 2

    select = "SELECT thread, claim, checkpoints, used_at FROM conversations ORDER BY thread"
    assert await target.rows(select) == await source.rows(select)
    await EvidenceStore(target).of("t", claims[0]).keep("e1", "text")
    assert (await target.claim_run("new")).number > claims[1].number


async def test_a_database_that_holds_something_is_not_copied_to(both: Both) -> None:
    source, target = both
    await run(source, build_echo(), {"said": ["x"]})
    await EvidenceStore(target).of("t").keep("e1", "text")

    with pytest.raises(CheckpointError, match="holds conversations already"):
        await copy_conversations(source, target, tell_nobody)

    assert await read(target) is None


async def test_what_does_not_arrive_as_it_was_is_an_error(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = both
    await run(source, build_echo(), {"said": ["x"]})

    async def copy_nothing(*_: object) -> bool:
        return False

    monkeypatch.setattr(conversation_copy, "fork_checkpoint", copy_nothing)

    with pytest.raises(CheckpointError, match="not copied correctly"):
        await copy_conversations(source, target, tell_nobody)
