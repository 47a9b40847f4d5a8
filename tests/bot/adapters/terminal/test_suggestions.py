"""The questions that the terminal suggests: this repository can really answer them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.adapters.terminal.suggestions import (
    find_headings,
    format_banner,
    split_words,
    suggest_questions,
    turn_into_question,
)
from indexer.index import CodeIndex
from tests.fakes.citebot import Citebot
from tests.fakes.parts import FakeIndex
from tests.fakes.repositories import GitRepo
from tests.fakes.shop import SHOP

GUIDE = """# Guide

## Overview

The shop sells things.

## Running the shop

Start the shop with `python -m shop`; orders are then taken at port 8000.

```
# How to be ignored here
```
"""


async def suggest(root: Path, home: Path) -> list[str]:
    index = await CodeIndex.open(root, home=home)
    try:
        if not await index.is_current():
            await index.refresh()
        return [*await suggest_questions(await index.pin())]
    finally:
        await index.aclose()


@pytest.fixture
def guided(tmp_path: Path) -> GitRepo:
    """The shop, with a guide."""
    repo = GitRepo(tmp_path / "guided")
    for path, text in {**SHOP, "docs/guide.md": GUIDE}.items():
        repo.write(path, text)
    repo.commit()
    return repo


async def test_three_questions_are_made_from_calls_definitions_and_documents(guided: GitRepo, tmp_path: Path) -> None:
    who, where, how = await suggest(guided.root, tmp_path / "home")

    assert who.startswith("who calls ")
    assert where.startswith("where is ")
    assert how == "how do I run the shop?"


def test_every_question_that_is_suggested_is_answered_from_the_right_place(
    guided: GitRepo, citebot: Citebot, tmp_path: Path
) -> None:
    suggested = asyncio.run(suggest(guided.root, tmp_path / "other"))

    assert len(suggested) == 3
    for question in suggested:
        answer = citebot("ask", question, "--json", "--repo", str(guided.root)).answer
        assert answer["found"], question
        assert answer["citations"], question
        named = question.removesuffix("?").split()[2]
        assert named in answer["answer"] or "docs/guide.md" in {each["path"] for each in answer["citations"]}


async def test_a_repository_without_documents_or_code_suggests_what_it_can(tmp_path: Path) -> None:
    bare = GitRepo(tmp_path / "bare")
    bare.write("data.csv", "1,2\n")
    bare.commit()
    code = GitRepo(tmp_path / "code")
    code.write(
        "a.py", "def parse_text(text):\n    return split_words(text)\n\n\ndef split_words(text):\n    return text\n"
    )
    code.commit()

    assert await suggest(bare.root, tmp_path / "home") == []
    assert await suggest(code.root, tmp_path / "home") == [
        "who calls split_words?", "where is parse_text defined?", "what does parse_text call?"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("Running the tests", "how do I run the tests?"),
        ("How to deploy a worker", "how do I deploy a worker?"),
        ("Setting Up", "how do I set Up?"),
        ("Using SQLAlchemy", "how do I use SQLAlchemy?"),
        ("Add `foo()` to bar", ""),
        ("Changelog for 1.2", ""),
    ],
)
def test_only_a_heading_that_says_what_is_done_becomes_a_question(heading: str, question: str) -> None:
    assert turn_into_question(heading) == question


def test_headings_of_both_languages_are_found_outside_code() -> None:
    text = "# One #\n\n```\n# no\n```\n\nTwo\n===\n\n=====\nThree\n=====\n\ntext\nmore text\n"

    assert [*find_headings(text)] == ["One", "Two", "Three"]


@pytest.mark.parametrize(
    ("name", "words"), [("parse_date", ["parse", "date"]), ("parseDate", ["parse", "Date"]), ("HTTP", ["HTTP"])]
)
def test_a_name_is_split_into_its_words(name: str, words: list[str]) -> None:
    assert split_words(name) == words


async def test_the_banner_says_which_code_how_much_and_who_writes() -> None:
    status = await FakeIndex().status()

    alone = format_banner("1.0", status, "", ["who calls send?"])
    assert alone.startswith("citebot 1.0: demo at 0123456 on main, 12 files.\nNo language model: answers quote the")
    assert "\n  who calls send?\n" in alone
    assert alone.endswith("Alt-Enter starts a new line.")
    assert "google_genai:x writes the answers." in format_banner("1.0", status, "google_genai:x", [])
