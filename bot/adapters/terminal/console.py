"""The conversation in a terminal, or over a pipe: lines in, answers out, a few commands."""

from __future__ import annotations

import difflib
import io
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol, TextIO

from agent import MAX_RAW_TEXT, AgentError
from bot.adapters.terminal import output
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.last_answer import NO_ANSWER, copy_answer, open_citation
from bot.adapters.terminal.questions import ShownAnswer, TerminalQuestions
from bot.errors import BotError, describe_unexpected
from bot.ports import Answerer, RefSource, RepositoryIndex
from bot.questions.descriptions import explain_answer
from bot.repositories.refresh import refresh_index
from bot.tasks import run_abandonable, run_until_interrupt
from indexer import IndexerError, describe_error

log = logging.getLogger(__name__)

# The commands at the prompt: their arguments and effects.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "/open": ("N", "open citation N in your editor ($VISUAL or $EDITOR)"),
    "/copy": ("", "copy the last answer to the clipboard"),
    "/why": ("", "how the last answer was found"),
    "/reindex": ("[full]", 'index HEAD now; "full" starts from scratch'),
    "/status": ("", "what is indexed"),
    "/new": ("", "forget this conversation and start another"),
    "/help": ("", "this list"),
    "/quit": ("", "leave; so does Ctrl-D, or Ctrl-C twice"),
}
# Words to leave with, anywhere.
_LEAVING = frozenset({"/quit", "/exit", "/q", "quit", "exit", "quit()", "exit()", ":q"})
HELP = "\n".join(
    [
        'Ask anything about the code; "and who calls it?" refers to the previous answer.',
        *(f"{f'{name} {takes}':<17}{what}" for name, (takes, what) in COMMANDS.items()),
        "Tab completes commands, files and names; Alt-Enter begins another line. Ctrl-C stops an answer.",
    ]
)


class InputLines(Protocol):
    """The source of a person's lines."""

    async def read(self) -> str | None:
        """Wait for the next line; None at the end."""


class PipedInput:
    """Lines of a stream that has a file descriptor; nothing may have been read from it yet."""

    def __init__(self, stream: TextIO) -> None:
        # Unbuffered, because a thread that waits inside a buffer keeps the interpreter from ending.
        self._file = io.FileIO(stream.fileno(), closefd=False)
        self._encoding = stream.encoding

    async def read(self) -> str | None:
        """Wait for the next line; None at the end, and for an unreadable stream."""
        try:
            data = await run_abandonable(self._read_line)
        except OSError as error:
            log.warning("Standard input cannot be read: %s", error)
            return None
        return data.decode(self._encoding, "replace").rstrip("\r\n") if data else None

    def _read_line(self) -> bytes:
        data = self._file.readline(4 * MAX_RAW_TEXT)
        if len(data) == 4 * MAX_RAW_TEXT and not data.endswith(b"\n"):
            # Too long for any answer: read and discard the rest of the line.
            while (part := self._file.readline(4 * MAX_RAW_TEXT)) and not part.endswith(b"\n"):
                pass
        return data


class ConsoleChat:
    """One conversation with one person. `stoppable` is set while Ctrl-C ends an answer and not the program."""

    def __init__(
        self,
        index: RepositoryIndex,
        agent: Answerer,
        *,
        terminal: Terminal,
        lines: InputLines,
        stoppable: bool,
        refs: Mapping[str, RefSource] | None = None,
    ) -> None:
        self._index = index
        self._agent = agent
        self._questions = TerminalQuestions(
            terminal=terminal, indexes=[index], open_agent=lambda _: nullcontext(agent), refs=refs or {}
        )
        self._terminal = terminal
        self._lines = lines
        self._stoppable = stoppable
        self._thread = _make_thread()
        self._last: ShownAnswer | None = None
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/open": self._open,
            "/copy": self._copy,
            "/why": self._why,
            "/reindex": self._reindex,
            "/status": self._status,
            "/new": self._start_new,
            "/help": self._help,
        }

    async def run(self) -> bool:
        """Answer lines until there are no more; return whether all succeeded."""
        succeeded = True
        try:
            while (line := await self._lines.read()) is not None and line.strip().lower() not in _LEAVING:
                if line.strip():
                    succeeded &= await self._run_safely(self._respond(line.strip()))
        finally:
            await self._agent.forget(self._thread)
        return succeeded

    async def _run_safely(self, work: Coroutine[None, None, None]) -> bool:
        """Do the work and report failures of a line, so that the next one can follow."""
        try:
            if self._stoppable and not await run_until_interrupt(work):
                self._terminal.note("Stopped.")
            elif not self._stoppable:
                await work
        except (IndexerError, AgentError, BotError) as error:
            self._terminal.note(describe_error(error))
            return False
        except Exception as error:  # the next line may fare better
            log.debug("A line was not handled.", exc_info=True)
            self._terminal.note(describe_unexpected(error))
            return False
        return True

    async def _respond(self, line: str) -> None:
        if not line.startswith("/"):
            last = self._last.record if self._last is not None else None
            self._last = await self._questions.ask(line, conversation=self._thread, last=last)
            self._terminal.write("")
            if self._last.answer.route == "paused":
                self._terminal.note("(Your next line is the reply.)")
            return
        name, *words = line.split()
        command = self._commands.get(name.lower())
        if command is None:
            near = difflib.get_close_matches(name[:40].lower(), self._commands, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise BotError(
                f"There is no command {name[:40]}. {hint}/help lists them; a question does not begin with a slash."
            )
        await command(" ".join(words))

    async def _open(self, rest: str) -> None:
        root = Path((await self._index.status()).path)
        await open_citation(self._require_answer(), rest, root, self._terminal)

    async def _copy(self, _: str) -> None:
        copy_answer(self._require_answer(), self._terminal)

    async def _why(self, _: str) -> None:
        self._terminal.show_markdown(explain_answer(self._require_answer().record))

    def _require_answer(self) -> ShownAnswer:
        if self._last is None:
            raise BotError(NO_ANSWER)
        return self._last

    async def _reindex(self, rest: str) -> None:
        if rest not in {"", "full"}:
            raise BotError("Write /reindex, or /reindex full to start from scratch.")
        report = await refresh_index(self._index, self._terminal, full=rest == "full")
        self._terminal.write(output.format_refresh_report(report, (await self._index.status()).repository))

    async def _status(self, _: str) -> None:
        self._terminal.write(output.format_status(await self._index.status()))

    async def _start_new(self, _: str) -> None:
        await self._agent.forget(self._thread)
        self._thread, self._last = _make_thread(), None
        self._terminal.write("A new conversation.")

    async def _help(self, _: str) -> None:
        self._terminal.write(HELP)


def _make_thread() -> str:
    return f"console:local:local:{uuid.uuid4().hex}"
