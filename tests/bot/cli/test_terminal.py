"""citebot in a real terminal: what is typed early, the banner, what shows while people wait, what it is left as."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.citebot import run_citebot
from tests.fakes.gemini import Failure, FakeGemini, running_gemini, says
from tests.forks import ForkServer
from tests.waiting import LIMIT_SECONDS

PROMPT = "\x1b[?2004h"  # what a prompt that takes keys begins with


class Pty:
    """A terminal with a program in it; `seen` is everything that was written to it."""

    def __init__(self, forks: ForkServer, *arguments: str, env: dict[str, str]) -> None:
        self._own, self._other = os.openpty()
        fcntl.ioctl(self._other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.seen = ""
        end = self._other
        self._fork = forks.start(run_citebot, *arguments, env=env, stdin=end, stdout=end, stderr=end)

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until a text was written."""
        self._read_until(lambda: text in self.seen)

    def forget(self) -> None:
        """Wait for what comes from now on."""
        self.seen = ""

    def wait_for_end(self) -> int:
        """Read on, as a program may wait for its last line to be taken, until it has ended."""
        self._read_until(lambda: self._fork.poll() is not None)
        return self._fork.wait()

    def _read_until(self, is_over: Callable[[], bool]) -> None:
        until = time.monotonic() + LIMIT_SECONDS
        while not is_over():
            assert time.monotonic() < until, self.seen
            if select.select([self._own], [], [], 0.05)[0]:
                self.seen += os.read(self._own, 4096).decode(errors="replace")

    @property
    def shows_what_is_typed(self) -> bool:
        return bool(termios.tcgetattr(self._other)[3] & termios.ECHO)

    def close(self) -> None:
        self._fork.kill()
        os.close(self._own)
        os.close(self._other)


@pytest.fixture
def surroundings(shop: Path, home: Path) -> dict[str, str]:
    """The environment of a program that answers about the shop."""
    return {
        "PATH": os.environ["PATH"], "TERM": "xterm-256color", "HOME": str(home), "CITEBOT_HOME": str(home),
        "CITEBOT_REPO": str(shop), "PROMPT_TOOLKIT_NO_CPR": "1",
    }  # fmt: skip


@pytest.fixture
def terminal(forks: ForkServer, surroundings: dict[str, str]) -> Iterator[Pty]:
    pty = Pty(forks, "chat", env=surroundings)
    yield pty
    pty.close()


@pytest.fixture
def gemini(surroundings: dict[str, str]) -> Iterator[FakeGemini]:
    """A Gemini that the program asks."""
    with running_gemini() as fake:
        surroundings |= {"GOOGLE_API_KEY": "a-key", "GOOGLE_API_BASE_URL": fake.url}
        yield fake


@pytest.mark.exhaustive
def test_a_question_typed_before_the_prompt_is_whole_behind_it_and_answered(terminal: Pty) -> None:
    terminal.type("where is parse_date def")
    terminal.wait_for("citebot ")
    early, _, _ = terminal.seen.rpartition("citebot ")
    assert "where is" not in early.rpartition("\r")[2]
    assert early.endswith("\r\x1b[2K")  # whatever was shown of it is taken away
    terminal.wait_for(PROMPT)
    terminal.forget()
    terminal.wait_for("where is parse_date def")
    terminal.type("ined?\r")
    terminal.wait_for("shop/dates.py:6")
    terminal.type("/quit\r")

    assert terminal.wait_for_end() == 0


def test_the_banner_says_what_there_is_and_suggests_questions_that_are_answered(terminal: Pty) -> None:
    terminal.wait_for(PROMPT)

    banner = terminal.seen[terminal.seen.index("citebot ") :]
    assert re.search(r"at [0-9a-f]{7} on main, \d+ files\.", banner)
    assert "No language model: answers quote the code." in banner
    questions = re.findall(r"^  (.+\?)\r$", banner, re.MULTILINE)
    assert 2 <= len(questions) <= 3
    for question in questions:
        terminal.forget()
        terminal.type(f"{question}\r")
        terminal.wait_for("shop/")
        terminal.wait_for(PROMPT)
    terminal.type("\x04")

    assert terminal.wait_for_end() == 0


def test_the_terminal_shows_again_what_is_typed_when_the_conversation_is_over(terminal: Pty) -> None:
    terminal.wait_for(PROMPT)
    assert not terminal.shows_what_is_typed
    terminal.type("\x04")

    assert terminal.wait_for_end() == 0
    assert terminal.shows_what_is_typed


def test_the_first_places_are_linked_until_the_answer_begins(
    forks: ForkServer, shop: Path, surroundings: dict[str, str], gemini: FakeGemini
) -> None:
    gemini.replies.append(says("The function `parse_date` reads it [E1].", pause=LIMIT_SECONDS))
    pty = Pty(forks, "ask", "where is parse_date defined?", env=surroundings)
    try:
        pty.wait_for("shop/dates.py:6-8\x1b]8;;\x1b\\\r\n")
        pty.wait_for("Writing the answer")
        waiting = pty.seen
        gemini.released.set()
        assert pty.wait_for_end() == 0
    finally:
        pty.close()

    link = rf"\x1b\]8;[^;]*;{re.escape((shop / 'shop/dates.py').as_uri())}\x1b\\[^\x1b]*shop/dates\.py:6-8"
    assert re.search(link, waiting)
    assert "reads it" not in waiting
    assert "reads it [1]" in pty.seen


def test_a_fallback_is_told_in_one_sentence_and_no_line_of_the_log_stands_in_the_live_display(
    forks: ForkServer, surroundings: dict[str, str], gemini: FakeGemini
) -> None:
    gemini.script = lambda _: Failure(status=429)
    pty = Pty(forks, "ask", "where is parse_date defined?", env=surroundings)
    try:
        assert pty.wait_for_end() == 0
    finally:
        pty.close()

    live, _, after = pty.seen.partition("\x1b[?25h")  # the cursor is shown again where the display ends
    assert "Writing the answer" in live
    assert "WARNING" not in live
    assert after.count("Without the language model, because the quota of the language model is used up.") == 1
    assert after.count("\r\nWARNING") + after.count("KWARNING") == 1
