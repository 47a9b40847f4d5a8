"""Answers that are lists: complete, counted, and continued by "more"."""

from __future__ import annotations

import re

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import SqliteConversations
from indexer.git.permalinks import make_permalink
from indexer.types import Location
from tests.agent.conftest import answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary

NAMES = [f"step_{number:02}" for number in range(40)]
FILES = {
    "src/steps.py": "\n\n".join(f'def {name}():\n    """Take {name}."""' for name in NAMES) + "\n",
    "src/core/engine.py": "class Engine:\n    pass\n",
    "src/core/deep/cog.py": "def turn():\n    pass\n",
    "README.md": "# Steps\n",
}


def make_agent(saver: SqliteConversations) -> Agent:
    return Agent(FakeLibrary(FakeCode(FILES)), saver, redact)


async def test_every_name_of_a_file_is_listed_once_over_as_many_answers_as_it_takes(saver: SqliteConversations) -> None:
    agent = make_agent(saver)
    listed: list[str] = []

    answer = await answer_to(agent, "what is in src/steps.py?", "t")
    assert "defines 40 names" in answer.text
    for _ in range(5):
        listed += re.findall(r"^- function `(step_\d\d)`", answer.text, re.MULTILINE)
        if 'say "more"' not in answer.text:
            break
        answer = await answer_to(agent, "more", "t")

    assert listed == NAMES


async def test_more_after_a_complete_list_lists_nothing_again(saver: SqliteConversations) -> None:
    agent = make_agent(saver)
    await answer_to(agent, "what is in the src/core folder?", "t")

    answer = await answer_to(agent, "more", "t")

    assert "`engine.py`" not in answer.text


async def test_a_folder_is_answered_with_its_folders_and_files(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver), "what is in src/core?", "t")

    assert "`src/core/` holds 2 files and 1 folder:" in answer.text
    assert "- `deep/`: 1 file" in answer.text
    assert "- `engine.py` [1], 2 lines: `Engine`" in answer.text
    assert [(one.path, one.start_line) for one in answer.citations] == [("src/core/engine.py", 1)]


async def test_a_folder_is_found_by_the_end_of_its_path(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver), "list everything in the core directory", "t")

    assert "`src/core/` holds" in answer.text


def test_a_commit_has_a_page_of_its_own_on_each_host() -> None:
    commit = Location(path="", start_line=0, end_line=0, commit="abc123")

    assert make_permalink("https://github.com/a/b", "abc123", commit) == "https://github.com/a/b/commit/abc123"
    assert make_permalink("https://gitlab.com/a/b", "abc123", commit) == "https://gitlab.com/a/b/-/commit/abc123"
    assert make_permalink("https://bitbucket.org/a/b", "abc123", commit) == "https://bitbucket.org/a/b/commits/abc123"
    assert make_permalink("https://codeberg.org/a/b", "abc123", commit) == "https://codeberg.org/a/b/commit/abc123"


@pytest.mark.parametrize(
    "question",
    [
        "what does shop do?",
        "how is Shop laid out?",
        "what's shop's architecture?",
        "what is this project and what is it built with?",
    ],
)
async def test_a_project_is_meant_by_its_name_and_by_it(saver: SqliteConversations, question: str) -> None:
    files = {"README.md": "# Shop\n\n[![badge](x)](y)\n\nShop sells pets, and buys them back.\n", "a.py": "x = 1\n"}
    files |= {"pets/dogs.py": "y = 1\n", "pets/cats/cat.py": "z = 1\n"}
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, question, "t")

    assert answer.text == (
        "*Shop sells pets, and buys them back.* (`README.md` [1])\n\n"
        "4 files with 8 lines: 3 of python.\n\n"
        "- At the top: `a.py` [2] (1 line)\n"
        "- `pets/`: 2 files, with `cats/`"
    )


@pytest.mark.parametrize(
    "question", ["where does the program start?", "where is the entry point", "which is the main file?"]
)
async def test_where_the_program_starts_is_told_first(saver: SqliteConversations, question: str) -> None:
    files = {"README.md": "# Shop\n\nShop sells pets, and buys them back.\n", "shop/__main__.py": "start()\n"}
    files |= {"shop/pets.py": "def start_program():\n    pass\n"}

    answer = await answer_to(Agent(FakeLibrary(FakeCode(files)), saver, redact), question)

    assert answer.text.startswith("It starts in: `shop/__main__.py` [1]\n")


async def test_a_function_that_is_called_like_the_project_is_meant_where_it_is_spelt_so(
    saver: SqliteConversations,
) -> None:
    agent = Agent(FakeLibrary(FakeCode({"a.py": "def shop():\n    return 1\n"})), saver, redact)

    assert (await answer_to(agent, "what does shop do?", "t")).text.startswith("`shop` is defined in `a.py`")


async def test_a_package_beside_its_tests_is_the_package(saver: SqliteConversations) -> None:
    files = {"src/main/owner/Owner.java": "class Owner {}\n", "src/test/owner/OwnerTests.java": "class OwnerTests {}\n"}
    agent = Agent(FakeLibrary(FakeCode(files)), saver, redact)

    answer = await answer_to(agent, "whats inside the owner package", "t")

    assert answer.text.startswith("`src/main/owner/` holds 1 file:")


async def test_a_file_of_one_class_is_outlined_with_its_methods(saver: SqliteConversations) -> None:
    source = "class Queue:\n    def push(self, item):\n        return item\n\n    def clear(self):\n        pass\n"
    agent = Agent(FakeLibrary(FakeCode({"lib/queue.py": source})), saver, redact)

    answer = await answer_to(agent, "what is in lib/queue.py?", "t")

    assert "`lib/queue.py` [1] defines 3 names:" in answer.text
    assert "- method `Queue.push`" in answer.text
    assert "- method `Queue.clear`" in answer.text
