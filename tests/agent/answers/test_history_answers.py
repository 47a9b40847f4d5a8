"""Answers about changes, authors, times and reasons come from a real git repository and cite its commits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import Answer, CodeSearch
from indexer.index import CodeIndex
from tests.agent.conftest import answer_to, redact
from tests.fakes.repositories import GitRepo

BEN = "Ben Beispiel <ben@example.org>"
BOT = "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>"
PAY = '''"""Payments."""


def pay(order):
    """Pay for an order."""
    return order


def refund_at_once(order):
    """Give the money back."""
    return -order
'''


class HeldCode:
    """A `CodeLibrary` of one reader."""

    def __init__(self, code: CodeSearch) -> None:
        self._code = code

    async def pin(self, repository: str | None = None) -> CodeSearch:
        return self._code


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    """Two releases and what came after them, by two people."""
    repository = GitRepo(tmp_path / "shop")
    repository.write("shop/pay.py", PAY.partition("def refund")[0].rstrip() + "\n")
    repository.write("CODEOWNERS", "* @shop/all\n/shop/ @shop/payments\n")
    repository.write("CHANGELOG.md", "# Changelog\n\n## [1.0] - 2023-11-14\n\n- The first payments.\n")
    repository.commit("Pay for orders")
    repository.git("tag", "v1.0")
    repository.write("shop/pay.py", PAY)
    repository.write(
        "CHANGELOG.md",
        "# Changelog\n\n## [1.1] - 2023-11-15\n\n- Refunds are paid at once.\n\n## [1.0]\n\n- The first payments.\n",
    )
    repository.commit(
        "Give money back (#12)\n\nWaiting for the bank took three days,\nand customers wrote to us.\n\n"
        "Signed-off-by: Ben Beispiel <ben@example.org>",
        author=BEN,
    )
    repository.git("tag", "v1.1")
    repository.write("docs/pay.md", "How to pay.\n")
    repository.commit("Explain how to pay", author=BEN)
    repository.write("shop/pay.py", PAY.replace("return order\n", "return abs(order)\n"))
    repository.commit("Take only positive amounts\n\nA negative order paid the customer.")
    return repository


@pytest.fixture
async def agent(repository: GitRepo, tmp_path: Path, saver: SqliteConversations) -> AsyncIterator[Agent]:
    index = await CodeIndex.open(repository.root, home=tmp_path / "home", web_url="https://github.com/shop/shop")
    try:
        await index.refresh()
        yield Agent(HeldCode(await index.pin()), saver, redact)
    finally:
        await index.aclose()


def commits_of(answer: Answer) -> list[str | None]:
    return [one.url for one in answer.citations if not one.path]


async def test_the_newest_commits_answer_what_changed_lately(agent: Agent, repository: GitRepo) -> None:
    answer = await answer_to(agent, "what changed lately?")

    assert answer.text.startswith("Recent commits: 4, by 2 people, on 2023-11-14.")
    assert f"- `{repository.sha()[:8]}` [1], 2023-11-14, Ada Example: *Take only positive amounts*" in answer.text
    assert commits_of(answer)[0] == f"https://github.com/shop/shop/commit/{repository.sha()}"
    assert len(answer.text.split("\n")) <= 25


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("who last changed shop/pay.py?", "`shop/pay.py` is now `bank/payments.py`.", "no `shop"),
        ("when was shop/pay.py changed?", "`shop/pay.py` is now `bank/payments.py`.", "no `shop"),
        ("who last changed docs/pay.md?", "There is no `docs/pay.md` any more.", "is now"),
        ("what were the last two commits about?", "The newest commits: 2 commits", "Take only positive"),
        ("worum ging es in den letzten zwei Commits?", "Move the payments", "Take only positive"),
        ("what did Ben Beispiel work on?", "Explain how to pay", "Take only positive"),
    ],
)
async def test_what_has_moved_what_is_counted_and_what_a_person_did_is_found_by_git(
    repository: GitRepo, tmp_path: Path, saver: SqliteConversations, question: str, said: str, unsaid: str
) -> None:
    repository.rename("shop/pay.py", "bank/payments.py")
    repository.commit("Move the payments")
    repository.remove("docs/pay.md")
    repository.commit("Explain nothing")
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        answer = await answer_to(Agent(HeldCode(await index.pin()), saver, redact), question)
    finally:
        await index.aclose()

    assert said in answer.text
    assert unsaid not in answer.text
    assert commits_of(answer)


async def test_a_release_is_answered_with_its_section_of_the_changelog(agent: Agent) -> None:
    answer = await answer_to(agent, "what's new in the latest release?")

    assert "From `v1.0` (2023-11-14) to `v1.1` (2023-11-14): 1 commit" in answer.text
    assert "`CHANGELOG.md` [1] on `1.1`:" in answer.text
    assert "- Refunds are paid at once." in answer.text
    assert "The first payments" not in answer.text
    assert "*Give money back (#12)*" in answer.text
    assert "Take only positive amounts" not in answer.text
    assert ("CHANGELOG.md", 3, 5) in {(one.path, one.start_line, one.end_line) for one in answer.citations}


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("what changed since 1.1?", ["Explain how to pay", "Take only positive"], ["Give money back"]),
        ("what changed between v1.0 and v1.1?", ["Give money back"], ["Explain how to pay"]),
        ("what changed in the docs folder?", ["1 commit to `docs`", "Explain how to pay"], ["Give money back"]),
        ("what changed in shop/pay.py since v1.0?", ["Take only positive", "Give money back"], ["Explain", "Pay for"]),
        ("when was 1.1 released?", ["to `v1.1` (2023-11-14)"], ["Take only positive"]),
        ("what changed in refund_at_once?", ["Give money back"], ["Take only positive"]),
    ],
)
async def test_changes_are_those_of_the_range_and_the_place(
    agent: Agent, question: str, said: list[str], unsaid: list[str]
) -> None:
    answer = await answer_to(agent, question)

    assert [part for part in said if part not in answer.text] == []
    assert [part for part in unsaid if part in answer.text] == []
    assert commits_of(answer)


async def test_dependency_updates_of_bots_are_counted_and_not_listed(
    repository: GitRepo, tmp_path: Path, saver: SqliteConversations
) -> None:
    for number in range(3):
        repository.write("requirements.txt", f"till=={number}\n")
        repository.commit(f"build(deps): bump till to {number}", author=BOT)

    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        answer = await answer_to(Agent(HeldCode(await index.pin()), saver, redact), "what changed lately?")
    finally:
        await index.aclose()

    assert "And 3 dependency updates by `dependabot`." in answer.text
    assert "bump till" not in answer.text


async def test_a_version_without_a_tag_is_told_with_the_tags_that_there_are(agent: Agent) -> None:
    answer = await answer_to(agent, "what changed since 9.9?")

    assert "There is no tag, branch or commit '9.9'" in answer.text
    assert "v1.1, v1.0" in answer.text


async def test_a_time_without_commits_is_told_with_the_newest_ones(agent: Agent) -> None:
    answer = await answer_to(agent, "what changed this week?")

    assert "No commits of this week are known here." in answer.text
    assert "Take only positive amounts" in answer.text


async def test_owners_come_first_and_people_by_the_lines_that_are_left(agent: Agent, repository: GitRepo) -> None:
    answer = await answer_to(agent, "who owns shop/pay.py?")

    assert answer.text.startswith(
        "`CODEOWNERS` [1] gives `/shop/` to `@shop/payments`. Most lines of `shop/pay.py` [2]"
    )
    assert "- Ada Example" in answer.text
    assert "6 of 11 lines, 2 commits" in answer.text
    assert "ben@example.org" not in answer.text
    assert f"https://github.com/shop/shop/commit/{repository.sha()}" in commits_of(answer)


async def test_the_author_of_a_definition_is_found_by_its_lines(agent: Agent) -> None:
    answer = await answer_to(agent, "who wrote refund_at_once?")

    assert "All lines of `refund_at_once` in `shop/pay.py` [2] are by Ben Beispiel." in answer.text


async def test_the_author_of_a_line_is_found(agent: Agent) -> None:
    answer = await answer_to(agent, "who wrote line 6 of shop/pay.py?")

    assert "All lines of `shop/pay.py` [2] are by Ada Example." in answer.text
    assert ("shop/pay.py", 6, 6) in {(one.path, one.start_line, one.end_line) for one in answer.citations}


async def test_what_has_no_name_in_the_question_is_searched_for(agent: Agent) -> None:
    answer = await answer_to(agent, "who wrote the code that gives the money back?")

    assert "`refund_at_once`" in answer.text
    assert "These are the first results of a search for the words of the question." in answer.text


async def test_the_people_of_everything_are_counted_by_commits(agent: Agent) -> None:
    answer = await answer_to(agent, "who are the maintainers?")

    assert "2 people made 4 commits to `shop`, most of them Ada Example." in answer.text
    assert "2 commits (50 %), 2023-11" in answer.text


async def test_asking_who_wrote_it_keeps_the_topic(agent: Agent) -> None:
    await answer_to(agent, "where is `refund_at_once` defined?", "t")

    who = await answer_to(agent, "who wrote it?", "t")
    when = await answer_to(agent, "when was it added?", "t")
    where = await answer_to(agent, "where is it defined?", "t")

    assert "All lines of `refund_at_once`" in who.text
    assert "1 commit to `refund_at_once`, on 2023-11-14." in when.text
    assert "`refund_at_once` is defined in `shop/pay.py`" in where.text


async def test_more_goes_on_with_older_commits(repository: GitRepo, tmp_path: Path, saver: SqliteConversations) -> None:
    for number in range(14):
        repository.write("docs/pay.md", f"How to pay, {number}.\n")
        repository.commit(f"Word it better {number:02}")
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        agent = Agent(HeldCode(await index.pin()), saver, redact)
        first = await answer_to(agent, "what changed in docs/pay.md?", "t")
        rest = await answer_to(agent, "more", "t")
    finally:
        await index.aclose()

    assert 'And 5 more; say "more" to see them.' in first.text
    assert [f"better {number:02}" in first.text for number in (13, 4, 3)] == [True, True, False]
    assert [f"better {number:02}" in rest.text for number in (4, 3, 0)] == [False, True, True]
    assert "Explain how to pay" in rest.text


async def test_a_path_in_a_submodule_is_said_to_be_in_one(
    repository: GitRepo, tmp_path: Path, saver: SqliteConversations
) -> None:
    other = GitRepo(tmp_path / "bank")
    other.write("src/bank.c", "int bank;\n")
    other.commit()
    repository.submodule("libs/bank", other)
    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        agent = Agent(HeldCode(await index.pin()), saver, redact)
        answers = [
            await answer_to(agent, question, str(number))
            for number, question in enumerate(
                ("how does libs/bank/src/bank.c work?", "what is in libs/bank?", "who wrote libs/bank/src/bank.c?")
            )
        ]
    finally:
        await index.aclose()

    for answer in answers:
        assert answer.text.startswith("`libs/bank` exists in `shop` but is not indexed: it is a submodule")


async def test_a_message_of_a_commit_cannot_break_out_of_its_quotation(
    repository: GitRepo, tmp_path: Path, saver: SqliteConversations
) -> None:
    repository.write("docs/pay.md", "Pay.\n")
    repository.commit(
        "See [this](https://evil.example) @everyone `x`\n\n```\n[click](https://evil.example)", author="[x](y) <z@z>"
    )
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        agent = Agent(HeldCode(await index.pin()), saver, redact)
        answer = await answer_to(agent, "what changed in docs/pay.md?")
    finally:
        await index.aclose()

    assert "`` See [this](https://evil.example) @everyone `x` ``" in answer.text
    assert "`[x](y)`" in answer.text


async def test_what_is_pending_is_what_came_after_the_newest_release(agent: Agent) -> None:
    answer = await answer_to(agent, "what's pending for the next release?")

    assert "Explain how to pay" in answer.text
    assert "Refunds are paid at once" not in answer.text  # that was released


async def test_a_version_without_a_tag_is_answered_from_the_changelog(agent: Agent, repository: GitRepo) -> None:
    repository.git("tag", "-d", "v1.1")

    answer = await answer_to(agent, "what was fixed in 1.1?")

    assert answer.text.startswith("There is no tag `1.1` here; the changelog has it.")
    assert "- Refunds are paid at once." in answer.text
