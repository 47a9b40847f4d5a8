"""Tab at the prompt: commands, files and names; and a line within a line with Alt-Enter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output import DummyOutput

from bot.adapters.terminal.console import COMMANDS
from bot.adapters.terminal.prompt import PromptCompleter, PromptedInput, find_word, match_paths
from indexer.index import CodeIndex
from tests.fakes.parts import FakeIndex
from tests.fakes.repositories import GitRepo
from tests.waiting import wait_for

PATHS = ["README.md", "src/api/views.py", "src/api/urls.py", "src/main.py", "tests/test_main.py"]


@pytest.fixture
def keyboard() -> Iterator[PipeInput]:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


def completer(index: FakeIndex | None = None) -> PromptCompleter:
    index = index or FakeIndex()
    index.code.paths = PATHS
    return PromptCompleter({name: what for name, (_, what) in COMMANDS.items()}, index.pin)


async def offered(text: str, *, asked: bool = True, index: FakeIndex | None = None) -> list[str]:
    event = CompleteEvent(completion_requested=asked, text_inserted=not asked)
    return [each.text async for each in completer(index).get_completions_async(Document(text), event)]


async def test_a_slash_offers_every_command_with_what_it_does() -> None:
    event = CompleteEvent(text_inserted=True)
    found = [each async for each in completer().get_completions_async(Document("/"), event)]

    assert [each.text for each in found] == [*COMMANDS]
    assert all(each.display_meta_text for each in found)
    assert await offered("/re", asked=False) == ["/reindex"]


async def test_tab_offers_names_and_files_that_begin_as_the_last_word() -> None:
    assert await offered("who calls se") == ["send", "Session.send"]
    assert await offered("what is in src/a") == ["src/api/"]
    assert await offered("open test_m") == ["tests/test_main.py"]


async def test_nothing_is_offered_while_a_question_is_typed() -> None:
    assert await offered("who calls se", asked=False) == []
    assert await offered("who calls ") == []
    assert await offered("") == []


async def test_nothing_is_offered_before_the_first_index() -> None:
    assert await offered("who calls se", index=FakeIndex(commit=None)) == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("src/", ["src/api/", "src/main.py"]),
        ("src/api/v", ["src/api/views.py"]),
        ("MAIN", ["src/main.py"]),
        ("read", ["README.md"]),
        ("nowhere", []),
    ],
)
def test_a_path_is_completed_folder_by_folder_or_by_the_name_of_the_file(word: str, expected: list[str]) -> None:
    assert match_paths(PATHS, word) == expected


@pytest.mark.parametrize(
    ("text", "word"), [("who calls Session.se", "Session.se"), ("in `src/a", "src/a"), ("what?", ""), ("", "")]
)
def test_the_word_before_the_cursor_is_found(text: str, word: str) -> None:
    assert find_word(text) == word


async def read_line(tmp_path: Path, type_keys: Callable[[], None]) -> str | None:
    lines = PromptedInput(tmp_path / "history", lambda _: None, str, completer())
    reading = asyncio.ensure_future(lines.read())
    type_keys()
    return await wait_for(reading, "the end of reading")


async def test_alt_enter_begins_another_line(keyboard: PipeInput, tmp_path: Path) -> None:
    typed = await read_line(tmp_path, lambda: keyboard.send_text("what does this mean?\x1b\rTypeError: 1\r"))

    assert typed == "what does this mean?\nTypeError: 1"


async def test_tab_completes_the_only_command_that_fits(keyboard: PipeInput, tmp_path: Path) -> None:
    lines = PromptedInput(tmp_path / "history", lambda _: None, str, completer())
    offers = asyncio.Event()
    lines._session.default_buffer.on_completions_changed += lambda _: offers.set()
    reading = asyncio.ensure_future(lines.read())
    keyboard.send_text("/sta")
    await wait_for(offers.wait(), "offers")
    keyboard.send_text("\t\r")

    assert await wait_for(reading, "the end of reading") == "/status"


async def test_names_of_a_real_index_are_completed_by_their_last_parts(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    repo.write("a.py", "class Session:\n    def send(self):\n        pass\n\n    def settle(self):\n        pass\n")
    repo.write("b.py", "def send_later():\n    pass\n")
    repo.commit()
    index = await CodeIndex.open(repo.root, home=tmp_path / "home")
    try:
        await index.refresh()
        code = await index.pin()
        assert await code.complete_name("sen") == ["send_later", "Session.send"]
        assert await code.complete_name("session.se") == ["Session.send", "Session.settle"]
        assert await code.complete_name("Session.") == ["Session.send", "Session.settle"]
        assert [*await code.complete_name("%"), *await code.complete_name("."), *await code.complete_name("zz")] == []
    finally:
        await index.aclose()
