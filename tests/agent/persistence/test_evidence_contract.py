"""The contract of evidence stores: texts come back under their keys, in their own conversation alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from agent.persistence.checkpointer import open_saver
from agent.persistence.evidence_store import EvidenceStore, open_memory_store
from agent.persistence.postgres.saver import open_postgres_saver
from agent.ports import EvidenceTexts, MemoryEvidence
from tests.fakes.postgres import lend_database
from tests.needs import name_params

OfConversation = Callable[[str], EvidenceTexts]


@asynccontextmanager
async def open_turn(_: Path) -> AsyncIterator[OfConversation]:
    texts: dict[str, MemoryEvidence] = {}
    yield lambda thread: texts.setdefault(thread, MemoryEvidence())


@asynccontextmanager
async def open_memory(_: Path) -> AsyncIterator[OfConversation]:
    async with open_memory_store() as store:
        yield EvidenceStore(store).of


@asynccontextmanager
async def open_sqlite(folder: Path) -> AsyncIterator[OfConversation]:
    async with open_saver(folder / "c.sqlite") as saver:
        yield EvidenceStore(saver).of


@asynccontextmanager
async def open_postgres(_: Path) -> AsyncIterator[OfConversation]:
    async with lend_database() as url, open_postgres_saver(url) as saver:
        yield EvidenceStore(saver).of


# By technology: a function of a folder that is this test's alone.
IMPLEMENTATIONS: dict[str, Callable[[Path], AbstractAsyncContextManager[OfConversation]]] = {
    "turn": open_turn,
    "memory": open_memory,
    "sqlite": open_sqlite,
    "postgres": open_postgres,
}


@pytest_asyncio.fixture(params=name_params(IMPLEMENTATIONS))
async def evidence_of(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OfConversation]:
    async with IMPLEMENTATIONS[request.param](tmp_path) as opened:
        yield opened


async def test_texts_come_back_under_their_keys_and_unknown_keys_are_left_out(evidence_of: OfConversation) -> None:
    evidence = evidence_of("t")
    await evidence.keep("e1", "def send():\n    pass\n")
    await evidence.keep("e2", "")

    assert await evidence.texts(["e1", "e2", "e3"]) == {"e1": "def send():\n    pass\n", "e2": ""}
    assert await evidence.texts([]) == {}


async def test_the_same_key_again_takes_its_place(evidence_of: OfConversation) -> None:
    for text in ("before", "after"):
        await evidence_of("t").keep("e1", text)

    assert await evidence_of("t").texts(iter(["e1"])) == {"e1": "after"}


async def test_a_conversation_sees_its_own_evidence_alone(evidence_of: OfConversation) -> None:
    await evidence_of("t").keep("e1", "theirs")
    await evidence_of("u").keep("e1", "ours")

    assert await evidence_of("t").texts(["e1"]) == {"e1": "theirs"}
    assert await evidence_of("u").texts(["e1"]) == {"e1": "ours"}
    assert await evidence_of("v").texts(["e1"]) == {}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("'; DROP TABLE evidence; -- 漢 \N{PILE OF POO}", "'; DROP TABLE evidence; -- 漢 \N{PILE OF POO}"),
        ("half of a \ud83d pair", "half of a ? pair"),
        ("x" * 1_000_000, "x" * 1_000_000),
    ],
    ids=["quotes", "surrogate", "long"],
)
async def test_every_text_can_be_kept(evidence_of: OfConversation, text: str, kept: str) -> None:
    await evidence_of("t").keep("e1", text)

    assert await evidence_of("t").texts(["e1"]) == {"e1": kept}


async def test_many_texts_are_read_at_once(evidence_of: OfConversation) -> None:
    evidence = evidence_of("t")
    for number in range(300):
        await evidence.keep(f"e{number}", str(number))

    found = await evidence.texts(f"e{number}" for number in range(0, 600, 2))

    assert found == {f"e{number}": str(number) for number in range(0, 300, 2)}
