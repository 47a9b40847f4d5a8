"""Answers about the changes between two versions or branches come from a real repository and cite both commits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from agent.agent import Agent
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import Answer, Deps
from agent.tools.registry import make_tool_registry
from indexer.index import CodeIndex
from tests.agent.answers.test_history_answers import HeldCode
from tests.agent.conftest import SECRET, Told, answer_to, redact
from tests.fakes.repositories import GitRepo
from tests.fakes.scripted_model import Line, ScriptedModel, ScriptedModels

PARSER = '''def parse_order(text):
    """Parse an order."""
    return text.split()


class Lexer:
    def tokens(self, text):
        yield text
'''
SPLIT = PARSER.replace("text.split()", 'text.split(",")')
LOWER = SPLIT.replace("yield text", "yield text.lower()")


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    """Two releases, a commit after them, and a branch that was made at the first."""
    repository = GitRepo(tmp_path / "shop")
    repository.write("src/parser.py", PARSER)
    repository.write("src/pay.py", "def pay(order):\n    return order\n")
    repository.write("docs/parser.md", "# Orders\n")
    repository.commit("Parse orders")
    repository.git("tag", "v1.0")
    repository.write("src/parser.py", SPLIT)
    repository.commit("Split at commas", author="Ben <ben@example.org>")
    repository.write("src/pay.py", "def pay(order):\n    return abs(order)\n")
    repository.write("logo.png", b"\x89PNG\0")
    repository.commit("Pay no negative amounts")
    repository.git("tag", "v2.0")
    repository.branch("release-1.1", at="v1.0")
    repository.write("src/pay.py", "def pay(order):\n    return max(order, 0)\n")
    repository.commit("Never pay below nothing")
    repository.checkout("main")
    repository.write("src/parser.py", LOWER)
    repository.commit("Lower the tokens")
    return repository


@pytest.fixture
async def code(repository: GitRepo, tmp_path: Path) -> AsyncIterator[HeldCode]:
    index = await CodeIndex.open(repository.root, home=tmp_path / "home", web_url="https://github.com/shop/shop")
    try:
        await index.refresh()
        yield HeldCode(await index.pin())
    finally:
        await index.aclose()


@pytest.fixture
def agent(code: HeldCode, saver: SqliteConversations) -> Agent:
    return Agent(code, saver, redact)


def urls(answer: Answer) -> set[str]:
    return {str(one.url).removeprefix("https://github.com/shop/shop/") for one in answer.citations}


async def test_what_changed_in_a_part_is_told_by_its_commits_files_and_lines(agent: Agent, repository: GitRepo) -> None:
    answer = await answer_to(agent, "what changed between v1.0 and v2.0 in the parser?")

    older, newer = repository.sha("v1.0"), repository.sha("v2.0")
    assert "From `v1.0` [1] (2023-11-14) to `v2.0` [2] (2023-11-14), in `src/parser.py`: 1 commit;" in answer.text
    assert "1 file changed, +1 −1 lines." in answer.text
    assert "Ben: *Split at commas*" in answer.text
    assert '- return text.split()\n+ return text.split(",")\n```' in answer.text
    assert "Pay no negative amounts" not in answer.text
    assert "abs(order)" not in answer.text
    assert {f"commit/{older}", f"commit/{newer}", f"blob/{older}/src/parser.py#L3"} <= urls(answer)
    assert f"blob/{newer}/src/parser.py#L3" in urls(answer)
    assert all(one.is_elsewhere for one in answer.citations if one.path)


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("what changed from v1.0 to v2.0", ["2 commits, by 2 people; 2 files", "abs(order)", "1 binary"], ["lower()"]),
        ("what changed since v2.0 in Lexer?", ["to `main`", "in `Lexer.tokens`, before", "+ yield text.lower()"], []),
        ("diff v1.0..v2.0 in src/pay.py", ["in `src/pay.py`: 1 commit", "abs(order)"], ["Split at commas", "in `pay`"]),
        ("compare parse_order on v1.0 and on main", ["in `parse_order`: 1 commit; 1 file", "+1 −1"], ["lower()"]),
        ("how does release-1.1 differ from main?", ["max(order, 0)", "not the 3 commits on `main` alone"], ["abs("]),
        ("what changed between main and release-1.1?", ["The branches diverged at", "*Never pay below"], ["Lower the"]),
        ("what changed between v2.0 and v2.0?", ["`v2.0` [1] (2023-11-14) are the same commit"], ["Files:"]),
        ("what changed between v1.0 and v9.0?", ["There is no tag, branch or commit 'v9.0'"], ["Files:"]),
        ("what is the difference between parse_order and pay?", ["`parse_order`"], ["no tag, branch"]),
    ],
)
async def test_comparisons_are_of_what_is_asked_about(
    agent: Agent, question: str, said: list[str], unsaid: list[str]
) -> None:
    answer = await answer_to(agent, question)

    assert [part for part in said if part not in answer.text] == []
    assert [part for part in unsaid if part in answer.text] == []


async def test_branches_that_parted_are_cited_where_they_did(agent: Agent, repository: GitRepo) -> None:
    answer = await answer_to(agent, "what changed between main and release-1.1?")

    assert f"blob/{repository.sha('v1.0')}/src/pay.py#L2" in urls(answer)
    assert f"blob/{repository.sha('release-1.1')}/src/pay.py#L2" in urls(answer)


async def test_the_rest_of_a_long_comparison_follows_on_demand(
    repository: GitRepo, tmp_path: Path, saver: SqliteConversations
) -> None:
    for number in range(15):
        repository.write(f"src/many/m{number}.py", f"VALUE = {number}\n")
        repository.commit(f"Add number {number}")
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        agent = Agent(HeldCode(await index.pin()), saver, redact)
        first = await answer_to(agent, "what changed since v2.0?", "t")
        second = await answer_to(agent, "more", "t")
        third = await answer_to(agent, "more", "t")
    finally:
        await index.aclose()

    assert 'And 10 commits, 10 files and 12 places more; say "more" to see them.' in first.text
    assert "From `v2.0`" not in second.text
    listed = [line for one in (first, second, third) for line in one.text.split("\n") if "*Add number" in line]
    assert len(listed) == len(set(listed)) == 15
    assert "VALUE = " in second.text
    assert 'say "more"' in third.text  # there are places left


async def test_secrets_are_masked_in_what_was_removed(
    repository: GitRepo, tmp_path: Path, saver: SqliteConversations
) -> None:
    repository.write("src/pay.py", f'TOKEN = "{SECRET}"\n')
    repository.commit("a token")
    repository.git("tag", "v3.0")
    repository.write("src/pay.py", "TOKEN = None\n")
    repository.commit("no token")
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        answer = await answer_to(Agent(HeldCode(await index.pin()), saver, redact), "what changed since v3.0?")
    finally:
        await index.aclose()

    assert "+ TOKEN = None" in answer.text
    assert SECRET not in answer.text


async def test_a_model_is_shown_both_sides_and_cites_each_at_its_commit(
    code: HeldCode, repository: GitRepo, saver: SqliteConversations
) -> None:
    def answer_from(messages: Sequence[BaseMessage]) -> Line:
        lines = "\n".join(str(message.text) for message in messages).split("\n")
        marks = [
            line.partition(" ")[0] for line in lines if line.startswith("[E") and "src/parser.py lines 3-3" in line
        ]
        assert any(line.strip().startswith("3: ") and "text.split()" in line for line in lines)
        return f"It used to split at spaces {marks[0]}, and `split` takes a comma now {marks[1]}."

    model = ScriptedModel({"executor_llm": [answer_from]})
    agent = Agent(code, saver, redact, models=ScriptedModels(model))
    answer = await answer_to(agent, "what changed between v1.0 and v2.0 in the parser?")

    assert answer.text == "It used to split at spaces [1], and `split` takes a comma now [2]."
    assert [(one.path, one.commit) for one in answer.citations] == [
        ("src/parser.py", repository.sha("v1.0")),
        ("src/parser.py", repository.sha("v2.0")),
    ]


async def test_a_model_compares_by_a_tool(code: HeldCode, repository: GitRepo, saver: SqliteConversations) -> None:
    def answer_from(messages: Sequence[BaseMessage]) -> Line:
        result = str(messages[-1].text)
        line = next(line for line in result.split("\n") if "src/pay.py:L2 at" in line and "removed" in line)
        return f"It was the bare order {line.partition(' ')[0]}."

    calls: Line = [("compare_refs", {"from_ref": "v1.0", "to_ref": "v2.0", "path": "src/pay.py"})]
    model = ScriptedModel({"executor_llm": [calls, answer_from]})
    agent = Agent(code, saver, redact, models=ScriptedModels(model))
    answer = await answer_to(agent, "where is pay defined?")

    assert answer.text == "It was the bare order [1]."
    assert [(one.path, one.start_line, one.commit) for one in answer.citations] == [
        ("src/pay.py", 2, repository.sha("v1.0"))
    ]


async def test_the_tool_says_what_cannot_be_compared(code: HeldCode) -> None:
    deps = Deps(code=await code.pin(), redact=redact, emit=Told(), tools=make_tool_registry())

    for args, said in (
        ({"from_ref": "v9"}, "There is no tag, branch or commit 'v9'"),
        ({"from_ref": "--output=/tmp/x"}, "There is no tag, branch or commit"),
        ({"from_ref": "v1.0", "to_ref": "v1.0"}, "are the same commit"),
        ({"from_ref": "v1.0", "path": "nothing/here"}, "is called nothing/here"),
        ({"from_ref": "a\nb"}, "control characters"),
        ({}, "from_ref"),
    ):
        outcome = await deps.tools.call("compare_refs", args, deps)
        assert said in outcome.text, args
