"""Whatever is asked, an answer comes, its marks and citations agree, and nothing is raised."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.agent import Agent
from agent.persistence.checkpointer import open_saver
from agent.ports import Answer
from agent.text.citation_markers import find_markers
from tests.agent.conftest import SECRET, answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.shop import SHOP

pytestmark = pytest.mark.exhaustive

PIECES = st.sampled_from(
    ["who calls", "where is", "parse_date", "it", "its tests", "`", "```", "shop/payments.py", ":20", "label", "[1]"]
) | st.sampled_from(
    ["what did I ask", "that class", "and", "\n", "?", 'File "a.py", line 3', "Session", "0xFF", ".", "::", "()", "/"]
)
QUESTIONS = st.one_of(
    st.text(st.characters(), max_size=200), st.lists(PIECES, max_size=12).map(" ".join), st.lists(PIECES).map("".join)
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


def assert_sound(answer: Answer) -> None:
    assert answer.text.strip()
    assert answer.route != "failed"
    assert list(dict.fromkeys(mark.number for mark in find_markers(answer.text))) == [
        citation.mark for citation in answer.citations
    ]
    assert SECRET not in answer.text
    assert all(citation.path in SHOP or not citation.path for citation in answer.citations)  # a commit has no path


async def ask_all(questions: list[str]) -> list[Answer]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_saver(Path(folder) / "c.db") as saver:
            agent = Agent(FakeLibrary(FakeCode(SHOP)), saver, redact)
            return [await answer_to(agent, question) for question in questions]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(questions=st.lists(QUESTIONS, min_size=1, max_size=4))
def test_any_conversation_ends_in_sound_answers(runner: asyncio.Runner, questions: list[str]) -> None:
    for answer in runner.run(ask_all(questions)):
        assert_sound(answer)


@pytest.mark.parametrize(
    "question",
    [
        "x" * 4000,
        "a_b " * 999,
        "`" * 3999,
        "\x00\x01\x02",
        "where\u202e is \u200bparse_date",
        "👩‍👩‍👧‍👦 " * 50,
        "\ud800 half a pair",
        "shop/" * 700,
        "[1] [2] [3]",
        "who calls ``` and `` ` ``?",
        'File "", line 0',
        "shop/dates.py:99999999",
        "shop/dates.py:9999999-1",
    ],
)
async def test_hostile_text_gets_a_sound_answer(agent: Agent, question: str) -> None:
    assert_sound(await answer_to(agent, question))
    assert_sound(await answer_to(agent, "and who calls it?"))
