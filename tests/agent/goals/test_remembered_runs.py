"""A conversation remembers the goal runs that were made in it."""

from __future__ import annotations

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import Answer, Citation
from agent.questions.follow_ups import find_run_turn
from tests.agent.conftest import SECRET, answer_to, remembered
from tests.agent.test_loop import QUESTION, agent_with, prompt_of
from tests.fakes.code import COMMIT

SHOWN = "This was a goal run (claim).\n\n**True.** The claim is true.\n\n_Checked with `python -m pytest x.py`_"
VERDICT = Answer(
    text=SHOWN,
    citations=(
        Citation(mark=1, path="shop/dates.py", start_line=6, end_line=8, commit=COMMIT.sha, url=None),
    ),
    repository="shop",
    commit=COMMIT.sha,
    intent="goal",
    route="goal",
    model="google_genai:fake",
    seconds=1.0,
    found=True,
)  # fmt: skip
CLAIM = "parse_date ignores spaces"


async def remember(agent: Agent, run_id: str = "run", answer: Answer = VERDICT) -> None:
    await agent.remember(CLAIM, answer, thread="t", run_id=run_id)


@pytest.mark.parametrize(
    "question", ["did you verify it?", "What did the run show?", "did it pass?", "how many tokens did it cost?"]
)
async def test_without_a_model_a_question_about_the_run_shows_it_again(agent: Agent, question: str) -> None:
    await remember(agent)
    answer = await answer_to(agent, question)
    assert (answer.text, answer.intent) == (SHOWN, "follow_up")


async def test_a_run_is_found_behind_later_turns_and_not_where_the_code_is_meant(agent: Agent) -> None:
    await remember(agent)
    await answer_to(agent, "where is Order defined?")
    assert (await answer_to(agent, "did you verify that?")).text == SHOWN
    assert "Order" in (await answer_to(agent, "where is Order tested?")).text
    assert find_run_turn("is it tested?", await remembered(agent)) is None


async def test_a_model_is_told_what_the_run_has_shown(saver: SqliteConversations) -> None:
    agent, model = agent_with(saver, "Yes: a test of it passed.", "It is in the code.")
    await remember(agent)
    answer = await answer_to(agent, "did you verify it?")
    assert answer.text == "Yes: a test of it passed."
    assert "**True.** The claim is true." in prompt_of(model, 0)
    await answer_to(agent, "why does it do that?")
    assert "**True.** The claim is true." in prompt_of(model, 1)


async def test_what_it_means_after_a_run_is_the_code_that_this_was_about(agent: Agent) -> None:
    await remember(agent)
    answer = await answer_to(agent, "which tests cover it?")
    assert answer.intent == "follow_up_with_retrieval"


async def test_a_run_is_remembered_once_and_a_secret_never(agent: Agent) -> None:
    await answer_to(agent, "where is parse_date defined?")
    for _ in range(2):
        await agent.remember(f"is {SECRET} there?", VERDICT, thread="t", run_id="run")
    turns = await remembered(agent)
    assert [turn["question"] for turn in turns] == ["where is parse_date defined?", "is [REDACTED:password] there?"]


async def test_a_run_ends_what_the_conversation_waited_for(saver: SqliteConversations) -> None:
    ask = ("ask_person", {"question": "Which one?"})
    agent, _ = agent_with(saver, [ask], "An order is paid [E1].")
    assert (await answer_to(agent, QUESTION)).route == "paused"
    await remember(agent)
    answer = await answer_to(agent, "what did I ask?")
    assert answer.text.endswith(f"1. `{CLAIM}`")
