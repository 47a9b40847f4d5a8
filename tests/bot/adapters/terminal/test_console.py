"""The conversation in the terminal: commands, Ctrl-C, the prompt."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import os
import signal
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from agent.events import AgentEvent
from bot.adapters.terminal.console import ConsoleChat, PipedInput
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.prompt import PromptedInput
from tests.fakes.parts import ANSWER, CITATION, FakeAssistant, FakeIndex, answering, event
from tests.waiting import LIMIT_SECONDS, expect, wait_for


class Typed:
    """Lines that a person types, one when the last was dealt with."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    async def read(self) -> str | None:
        return self._lines.pop(0) if self._lines else None


class Window:
    """A chat on a terminal of text, and what is seen of it."""

    def __init__(
        self,
        *lines: str,
        index: FakeIndex | None = None,
        assistant: FakeAssistant | None = None,
        stoppable: bool = False,
    ) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.index = index or FakeIndex()
        self.assistant = assistant or FakeAssistant()
        self.chat = ConsoleChat(
            self.index,
            self.assistant,
            terminal=Terminal(out=Console(file=self.out, width=200), err=Console(file=self.err, width=200)),
            lines=Typed(*lines),
            stoppable=stoppable,
        )


@pytest.mark.parametrize("word", ["/quit", "exit", "Quit", "quit()", ":q"])
async def test_quit_leaves_the_rest_unread(word: str) -> None:
    window = Window("one?", word, "two?")

    assert await window.chat.run()
    assert [question for question, _ in window.assistant.asked] == ["one?"]


async def test_leaving_forgets_the_conversation() -> None:
    window = Window("one?")

    await window.chat.run()

    assert window.assistant.forgotten == [window.assistant.asked[0][1]]


async def test_new_begins_another_thread() -> None:
    window = Window("one?", "/new", "two?")

    await window.chat.run()

    (_, first), (_, second) = window.assistant.asked
    assert first != second
    assert window.assistant.forgotten == [first, second]


async def test_an_unknown_command_is_told_and_the_chat_goes_on() -> None:
    window = Window("/reindx", "one?")

    assert not await window.chat.run()
    assert "There is no command /reindx. Did you mean /reindex? /help lists them" in window.err.getvalue()
    assert len(window.assistant.asked) == 1


async def test_help_lists_every_command() -> None:
    window = Window("/help")

    await window.chat.run()

    assert all(name in window.out.getvalue() for name in ("/reindex", "/status", "/new", "/help", "/quit"))


@pytest.mark.parametrize(("line", "refreshes"), [("/reindex", [False]), ("/reindex full", [True]), ("/reindex al", [])])
async def test_reindex_takes_the_word_full_and_no_other(line: str, refreshes: list[bool]) -> None:
    window = Window(line)

    assert await window.chat.run() == bool(refreshes)
    assert window.index.refreshes == refreshes


async def test_status_tells_what_is_indexed() -> None:
    window = Window("/status")

    await window.chat.run()

    assert "0123456 on main" in window.out.getvalue()


async def test_a_question_is_asked_at_head() -> None:
    window = Window("one?", "two?", index=FakeIndex(commit="f" * 40, current=False))

    await window.chat.run()

    assert window.index.refreshes == [False]


@pytest.mark.parametrize(
    ("changed", "said"), [(CITATION.path, f"Not read: the uncommitted changes in {CITATION.path}."), ("other.py", "")]
)
async def test_uncommitted_changes_of_a_cited_file_are_told_below_the_answer(changed: str, said: str) -> None:
    window = Window("who sends?", index=FakeIndex(uncommitted=(changed,)))

    await window.chat.run()

    assert "Events are sent by" in window.out.getvalue()
    assert window.err.getvalue().strip() == said


async def test_one_failure_does_not_end_the_chat() -> None:
    failed = dataclasses.replace(ANSWER, text="Out of memory.", route="failed")
    window = Window("one?", "/status", assistant=FakeAssistant(*answering(failed)))

    assert not await window.chat.run()
    assert "Out of memory." in window.err.getvalue()
    assert "demo" in window.out.getvalue()


async def test_a_run_that_ends_early_is_an_error() -> None:
    window = Window("one?", assistant=FakeAssistant(event("step_start", node="x", stage="y")))

    assert not await window.chat.run()
    assert "ended without an answer" in window.err.getvalue()


async def test_ctrl_c_stops_the_answer_and_not_the_program() -> None:
    window = Window("one?", "/status", assistant=FakeAssistant(hangs=True), stoppable=True)

    async with expect("ctrl c stops the answer and not the program"), asyncio.TaskGroup() as group:
        running = group.create_task(window.chat.run())
        await window.assistant.begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    assert running.result()
    assert window.assistant.cancelled
    assert "Stopped." in window.err.getvalue()
    assert "demo" in window.out.getvalue()


async def test_ctrl_c_stops_a_refresh_in_its_thread() -> None:
    window = Window("/reindex", "/status", index=FakeIndex(endless=True), stoppable=True)

    async with expect("ctrl c stops a refresh in its thread"), asyncio.TaskGroup() as group:
        group.create_task(window.chat.run())
        await asyncio.to_thread(window.index.begun.wait, LIMIT_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    assert type(window.index.stopped_by).__name__ == "RefreshStopped"
    assert "Stopped." in window.err.getvalue()


async def test_the_interrupt_handler_is_put_back_after_an_answer() -> None:
    before = signal.getsignal(signal.SIGINT)

    await Window("one?", stoppable=True).chat.run()

    assert signal.getsignal(signal.SIGINT) is before


async def test_piped_lines_end_with_the_stream(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"one\r\n\nl\xe4st \xc3\xa4")
    with (tmp_path / "lines").open(encoding="utf-8") as stream:
        lines = PipedInput(stream)

        assert [await lines.read() for _ in range(4)] == ["one", "", "l\ufffdst ä", None]


async def test_a_defect_in_one_answer_does_not_end_the_chat() -> None:
    class Defective(FakeAssistant):
        def ask(self, question: str, *, thread: str, **_: Any) -> AsyncIterator[AgentEvent]:
            raise IndexError("list index out of range")

    window = Window("one?", "/status", assistant=Defective())

    assert not await window.chat.run()
    assert "(IndexError: list index out of range)" in window.err.getvalue()
    assert "demo" in window.out.getvalue()


@pytest.fixture
def keyboard() -> Iterator[PipeInput]:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


async def test_the_prompt_returns_what_was_typed_and_keeps_it(keyboard: PipeInput, tmp_path: Path) -> None:
    history = tmp_path / "home" / "history"
    lines = PromptedInput(history, lambda _: None)

    keyboard.send_text("where are retries?\r")

    assert await wait_for(lines.read(), "lines.read()") == "where are retries?"
    assert "where are retries?" in history.read_text(encoding="utf-8")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


async def test_ctrl_d_ends_the_prompt(keyboard: PipeInput, tmp_path: Path) -> None:
    keyboard.send_text("\x04")

    assert (
        await wait_for(
            PromptedInput(tmp_path / "history", lambda _: None).read(),
            "the end of input",
        )
        is None
    )


async def test_ctrl_c_twice_at_an_empty_prompt_ends_it(keyboard: PipeInput, tmp_path: Path) -> None:
    said: list[str] = []

    def press_again(text: str) -> None:
        said.append(text)
        keyboard.send_text("\x03")

    lines = PromptedInput(tmp_path / "history", press_again)

    keyboard.send_text("\x03")

    assert await wait_for(lines.read(), "lines.read()") is None
    assert said == ["Press Ctrl-C again, or Ctrl-D, to leave."]


async def test_ctrl_c_clears_what_was_typed(keyboard: PipeInput, tmp_path: Path) -> None:
    said: list[str] = []
    lines = PromptedInput(tmp_path / "history", said.append)
    reading = asyncio.ensure_future(lines.read())

    keyboard.send_text("half a quest\x03")
    keyboard.send_text("whole\r")

    assert await wait_for(reading, "the end of reading") == "whole"
    assert said == []


async def test_a_history_that_cannot_be_kept_is_said(keyboard: PipeInput, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said: list[str] = []
    lines = PromptedInput(tmp_path / "file" / "history", said.append)

    keyboard.send_text("one\r")

    assert await wait_for(lines.read(), "lines.read()") == "one"
    assert "not remembered" in said[0]


def test_a_history_that_has_grown_large_keeps_its_newer_half(tmp_path: Path) -> None:
    history = tmp_path / "history"
    entries = [f"\n# 2026-01-01 00:00:00.{number:06}\n+where is number {number}?\n" for number in range(20_000)]
    history.write_text("".join(entries), encoding="utf-8")
    before = history.stat().st_size

    PromptedInput(history, lambda _: None)

    kept = history.read_text(encoding="utf-8")
    assert before > 2**20 > 2 * (len(kept) - 1)
    assert kept.startswith("# 2026-01-01")
    assert kept.endswith(entries[-1])
