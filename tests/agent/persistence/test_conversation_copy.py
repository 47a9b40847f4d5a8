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
from agent.persistence.postgres.conversation_copy import ConversationCounts, copy_conversations
from tests.agent.persistence.conftest import IMPLEMENTATIONS
from tests.agent.persistence.test_saver_contract import CONFIG, in_thread, make_graph, put
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
    older = await put(source, text="old", many=["old"])
    newer = await source.aput(older, (await source.aget_tuple(older)).checkpoint | {"id": "2"}, {}, {})  # type: ignore[union-attr]
    await source.aput_writes(newer, [("__interrupt__", "which?"), ("__error__", "none")], "task", "path 2")
    await source.aput_writes(newer, [("many", ["a"]), ("text", "b")], "later", "path 1")
    await put(source, in_thread("other"), many=[{"a": 1}])
    await EvidenceStore(source).of("t").keep("e1", "text")
    await EvidenceStore(source).of("left").keep("e1", "a \0 within")

    counts = await copy_conversations(source, target, tell_nobody)

    assert counts == ConversationCounts(conversations=3, checkpoints=3, writes=4, evidence=2)
    assert [one async for one in target.alist(CONFIG)] == [one async for one in source.alist(CONFIG)]
    assert await EvidenceStore(target).of("t").texts(["e1"]) == {"e1": "text"}


async def test_a_run_that_waits_for_a_person_goes_on_in_the_other_database(both: Both) -> None:
    source, target = both
    async with source.defer_checkpoints("t"):
        await make_graph(source).ainvoke({"said": []}, CONFIG, durability="sync")

    await copy_conversations(source, target, tell_nobody)

    async with target.defer_checkpoints("t"):
        done = await make_graph(target).ainvoke(Command(resume="the second"), CONFIG, durability="sync")
    assert done == {"said": ["begun", "the second"], "calls": 1}


async def test_the_last_run_of_a_conversation_is_copied_with_its_time(both: Both) -> None:
    source, target = both
    claims = [await source.claim_run(thread) for thread in ("t", "begun")]
    await put(source)

    assert (await copy_conversations(source, target, tell_nobody)).conversations == 2

    select = "SELECT thread_id, token, used_at FROM run_tokens ORDER BY thread_id"
    assert await target.rows(select) == await source.rows(select)
    await EvidenceStore(target).of("t", claims[0]).keep("e1", "text")


async def test_a_database_that_holds_something_is_not_copied_to(both: Both) -> None:
    source, target = both
    await put(source)
    await EvidenceStore(target).of("t").keep("e1", "text")

    with pytest.raises(CheckpointError, match="holds conversations already"):
        await copy_conversations(source, target, tell_nobody)

    assert await target.aget_tuple(CONFIG) is None


async def test_what_does_not_arrive_as_it_was_is_an_error(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = both
    await put(source, many=["x"])
    monkeypatch.setattr(source, "side_tables", ("no_such_table",))

    with pytest.raises(CheckpointError):
        await copy_conversations(source, target, tell_nobody)
