"""The last answer in the terminal: opens its citations, and copies it."""

from __future__ import annotations

import asyncio
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TextIO

from agent import Citation
from bot.adapters.terminal import output
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.questions import ShownAnswer
from bot.errors import BotError
from bot.markdown import format_location, to_one_line
from indexer import find_editor, is_safe_path, start_editor

_FLAGS = 3  # the place of the local modes among what termios returns


@contextmanager
def set_echo(stream: TextIO | None = None, *, on: bool) -> Iterator[None]:
    """Echo typed input, or keep it for the next prompt, while the context is open; does nothing without a terminal."""
    stream = stream if stream is not None else sys.stdin
    try:
        before = termios.tcgetattr(stream.fileno())
    except (termios.error, OSError, ValueError):  # no terminal
        yield
        return
    modes = [*before]
    modes[_FLAGS] = modes[_FLAGS] | termios.ECHO if on else modes[_FLAGS] & ~termios.ECHO
    # At once, and with nothing thrown away that was typed before.
    termios.tcsetattr(stream.fileno(), termios.TCSANOW, modes)
    try:
        yield
    finally:
        termios.tcsetattr(stream.fileno(), termios.TCSANOW, before)


NO_ANSWER = "There is no answer yet. Ask something first."
NOT_COPIED = "This terminal has no clipboard access. Select the text with the mouse."
COPIED = (
    "Sent to the clipboard. If it does not arrive, the terminal blocks clipboard access (in tmux: set -g "
    "set-clipboard on); select the text with the mouse."
)
# Editors that are told the line in another way than most, by the name of their program.
_GOTO = frozenset("code code-insiders codium vscodium cursor windsurf".split())
_COLON = frozenset("subl hx helix zed zeditor atom".split())
_PLUS = frozenset(
    "vi vim nvim view vimx gvim mvim nano pico emacs emacsclient micro kak joe jed mg ne mcedit gedit less most".split()
)


def copy_answer(last: ShownAnswer, terminal: Terminal) -> None:
    """Send an answer to the clipboard of the person's terminal."""
    terminal.note(COPIED if terminal.copy(output.format_answer(last.answer)) else NOT_COPIED)


async def open_citation(last: ShownAnswer, number: str, root: Path, terminal: Terminal) -> None:
    """Open a citation in the person's editor, or print its place."""
    cited = _find_citation(last.answer.citations, number)
    file = None if cited.is_elsewhere else await asyncio.to_thread(_find_file, root, cited.path)
    editor = find_editor()
    if file is None or not editor:
        terminal.write(_describe_place(cited, file))
        terminal.note("" if file is None else "Set EDITOR to the name of your editor to open it.")
        return
    try:
        process = start_editor([*editor, *make_editor_arguments(editor[0], file, cited.start_line)])
    except OSError as error:
        terminal.write(_describe_place(cited, file))
        raise BotError(f"The editor {to_one_line(editor[0])[:80]} cannot be started ({error.strerror}).") from error
    with set_echo(on=True):
        try:
            await asyncio.to_thread(process.wait)
        except asyncio.CancelledError:
            process.terminate()
            raise


def _find_citation(citations: Sequence[Citation], number: str) -> Citation:
    if not citations:
        raise BotError("The last answer cites nothing.")
    found = next((cited for cited in citations if str(cited.mark) == number.strip("[] ")), None)
    if found is None:
        marks = ", ".join(str(cited.mark) for cited in citations)
        raise BotError(f"Write /open and the number of a citation of the last answer: {marks}.")
    return found


def _find_file(root: Path, path: str) -> Path | None:
    """Return the file of a working tree; None if it is missing or reached through a link to the outside."""
    if not path or not is_safe_path(path):
        return None
    try:
        file = (root / path).resolve()
        return file if file.is_file() and file.is_relative_to(root.resolve()) else None
    except (OSError, RuntimeError):  # as in a circle of links
        return None


def _describe_place(cited: Citation, file: Path | None) -> str:
    if cited.url or not cited.path:
        return to_one_line(cited.url or cited.commit)
    return format_location(str(file or cited.path), cited.start_line, cited.start_line)


def make_editor_arguments(editor: str, file: Path, line: int) -> Sequence[str]:
    """Return the arguments that make an editor show a line of a file."""
    name = PurePath(editor).name.removesuffix(".exe")
    if name in _GOTO:
        return ("--goto", f"{file}:{line}")
    if name in _COLON:
        return (f"{file}:{line}",)
    return (f"+{line}", str(file)) if name in _PLUS else (str(file),)
