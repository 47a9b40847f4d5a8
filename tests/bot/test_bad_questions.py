"""Odd questions and odd conversation databases are answered, or refused in a sentence."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import open_saver
from bot.adapters.terminal.console import ConsoleChat
from bot.adapters.terminal.display import Terminal
from bot.app import App, NamedLibrary
from bot.settings import RepositoryTable, Settings
from indexer.secrets import redact_secrets
from tests.fakes.citebot import Citebot, converse
from tests.fakes.gemini import FakeGemini, running_gemini, says

QUESTION = "where is parse_date defined?"
LANGUAGES = {
    "arabic": "أين يتم تعريف parse_date؟",
    "chinese": "parse_date 在哪里定义？",
    "french": "Où est définie parse_date ?",
    "german": "Wo ist parse_date definiert?",
    "hebrew": "איפה מוגדר parse_date?",
    "hindi": "parse_date कहाँ परिभाषित है?",
    "japanese": "parse_date はどこで定義されていますか？",
    "russian": "Где определена parse_date?",
    "spanish": "¿Dónde se define parse_date?",
    "turkish": "parse_date nerede tanımlanıyor?",
}
UNREADABLE = {
    "long": "how are orders paid? " * 2000,
    "zero width alone": "\u200b\u200d\ufeff",
    "signs alone": "?!...",
    "picture": "\N{SLIGHTLY SMILING FACE}",
}
ODD = {
    "control characters": f"\x01\x02{QUESTION}\x7f\x1b[2J\x9b",
    "bytes that are no text": os.fsdecode(b"\xff\xfe\x80 ") + QUESTION,
    "half a surrogate pair": f"{QUESTION} \ud83d",
    "zero width within": "where is pa\u200brse_\u200ddate def\ufeffined?",
    "right to left marks": f"\u202b\u200f{QUESTION}\u202c",
    "full width": "where is ｐａｒｓｅ_ｄａｔｅ defined?",
    "many lines": QUESTION.replace(" ", "\r\n\t"),
    "an option": "-- --repo where is parse_date defined?",
}


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGemini]:
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    with running_gemini() as fake:
        monkeypatch.setenv("GOOGLE_API_BASE_URL", fake.url)
        fake.script = lambda _: says("Here: `parse_date` [E1].")
        yield fake


# Questions


@pytest.mark.parametrize("question", ["", "   ", "\n\t"])
def test_an_empty_question_is_wrong_usage(citebot: Citebot, question: str) -> None:
    done = citebot("ask", question, "--json")

    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("Error: The question is empty.\n")


@pytest.mark.parametrize("question", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_question_gets_a_sentence_and_reaches_no_model(
    citebot: Citebot, gemini: FakeGemini, question: str
) -> None:
    answer = citebot("ask", "--json", "--", question).answer

    assert len(answer["answer"]) < 200
    assert answer["citations"] == []
    assert gemini.received == []


@pytest.mark.parametrize("question", ODD.values(), ids=ODD)
def test_odd_characters_do_not_hide_what_is_asked(citebot: Citebot, question: str) -> None:
    done = citebot("ask", "--json", "--", question)

    assert "shop/dates.py" in [citation["path"] for citation in done.answer["citations"]]
    assert not {"\x1b", "\x9b", "\u202b"} & set(citebot("ask", "--", question).out)


@pytest.mark.parametrize("question", LANGUAGES.values(), ids=LANGUAGES)
def test_a_name_is_found_in_a_question_of_any_language(citebot: Citebot, question: str) -> None:
    answer = citebot("ask", question, "--json").answer

    assert answer["citations"][0]["path"] == "shop/dates.py"
    assert "does not appear in the" not in answer["answer"]


def test_a_question_of_ten_languages_reaches_the_model_as_it_is(citebot: Citebot, gemini: FakeGemini) -> None:
    question = " ".join(LANGUAGES.values())

    answer = citebot("ask", question, "--json").answer

    assert answer["model"]
    assert "在哪里定义" in gemini.received[-1].prompt
    assert "Где определена parse_date?" in gemini.received[-1].prompt


def test_a_reply_that_nothing_waits_for_is_a_question(citebot: Citebot) -> None:
    done = citebot("ask", "approve", "--json")

    assert done.answer["route"] != "paused"


# The conversation database


def database(home: Path) -> Path:
    return home / "conversations.sqlite"


def of_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def of_another_layout(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE somebodys (thing)")


def of_no_database(path: Path) -> None:
    path.write_bytes(b"no database at all, but long enough to be read as the header of one. " * 20)


def of_a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (of_another_version, "takes 2 to 7). Use that version, or move the file away"),
        (of_another_layout, "takes 2 to 7). Use that version, or move the file away"),
        (of_no_database, "is damaged. Move it away"),
        (of_a_folder, "cannot be written. Make the file and its folder writable."),
    ],
)
def test_a_database_that_cannot_be_used_is_named_and_left_alone(
    citebot: Citebot, home: Path, made: Callable[[Path], None], sentence: str
) -> None:
    made(database(home))
    before = database(home).read_bytes() if database(home).is_file() else b""

    complaint = converse(citebot, QUESTION).complaint

    assert complaint.startswith(f"The conversation database {database(home)} ")
    assert sentence in complaint
    assert not before or database(home).read_bytes() == before
    assert citebot("search", "parse a date").code == 0
    assert citebot("ask", QUESTION).code == 0


class Acted:
    """Lines that a person types; what is no text is done before the next one."""

    def __init__(self, *acts: str | Callable[[], object]) -> None:
        self._acts = list(acts)

    async def read(self) -> str | None:
        while self._acts:
            act = self._acts.pop(0)
            if isinstance(act, str):
                return act
            act()
        return None


@contextmanager
def another_writer(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that can hold the database as another process would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


async def test_a_locked_database_fails_one_turn_and_loses_no_thread(
    shop: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opening = App.open(Settings.load(), RepositoryTable(path=shop))
    async with opening as app, open_saver(database(home), busy_seconds=0.1) as saver:
        with another_writer(database(home)) as other:
            lines = Acted(
                QUESTION,
                lambda: other.execute("BEGIN IMMEDIATE"),
                "and who calls it?",
                lambda: other.execute("ROLLBACK"),
                "and who calls it?",
            )
            agent = Agent(NamedLibrary({"shop": app.index}), saver, redact_secrets)
            chat = ConsoleChat(app.index, agent, terminal=Terminal.standard(), lines=lines, stoppable=False)
            assert not await chat.run()

    said = capsys.readouterr()
    assert said.err.startswith("Another process holds the conversation database")
    assert said.err.count("\n") == 1
    assert "`Order.__init__` in `shop/orders.py" in said.out
