"""The conversation in a terminal, or over a pipe: lines in, answers out, a few commands."""

from __future__ import annotations

import asyncio
import io
import logging
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from agent import MAX_RAW_TEXT, AgentError
from bot.adapters.terminal import output
from bot.adapters.terminal.display import Terminal
from bot.errors import BotError, describe_unexpected
from bot.ports import Assistant, RepositoryIndex
from bot.repositories.refresh import refresh_if_stale, refresh_index
from bot.tasks import run_until_interrupt
from indexer import IndexerError

if TYPE_CHECKING:
    from prompt_toolkit.history import History

log = logging.getLogger(__name__)

_LARGEST_HISTORY = 2**20  # bytes

HELP = """\
Ask anything about the code; "and who calls it?" goes on from the answer before.
/reindex [full]  index HEAD now; "full" starts from scratch
/status          what is indexed
/new             forget this conversation and begin another
/help            this list
/quit            leave; so does Ctrl-D, or Ctrl-C twice
Ctrl-C stops an answer."""


class InputLines(Protocol):
    """Where a person's lines come from."""

    async def read(self) -> str | None:
        """Wait for the next line; None when there will be no more."""


class PipedInput:
    """Lines of a stream that has a file descriptor; nothing may have been read from it yet."""

    def __init__(self, stream: TextIO) -> None:
        # Unbuffered, because a thread that waits inside a buffer keeps the interpreter from ending.
        self._file = io.FileIO(stream.fileno(), closefd=False)
        self._encoding = stream.encoding

    async def read(self) -> str | None:
        """Wait for the next line; None at the end, and for a stream that cannot be read."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[bytes] = loop.create_future()
        # In a thread that nobody waits for: at Ctrl-C it may be waiting for a line that never comes.
        threading.Thread(target=self._read_into, args=(loop, line), daemon=True).start()
        data = await line
        return data.decode(self._encoding, "replace").rstrip("\r\n") if data else None

    def _read_into(self, loop: asyncio.AbstractEventLoop, line: asyncio.Future[bytes]) -> None:
        try:
            data = self._file.readline(4 * MAX_RAW_TEXT)
            if len(data) == 4 * MAX_RAW_TEXT and not data.endswith(b"\n"):
                # Too long to be answered, whatever comes: read the rest of the line, and keep nothing of it.
                while (part := self._file.readline(4 * MAX_RAW_TEXT)) and not part.endswith(b"\n"):
                    pass
        except OSError as error:
            log.warning("Standard input cannot be read: %s", error)
            data = b""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(_set_line, line, data)


def _trim_history(history: Path, mask: Callable[[str], str]) -> None:
    """Keep the newer half of a history that has grown large; each entry begins with a line `# time`.

    Earlier versions kept secrets in it.
    """
    content = kept = history.read_bytes()
    if len(kept) > _LARGEST_HISTORY:
        newer = kept[-_LARGEST_HISTORY // 2 :]
        kept = newer[newer.find(b"\n# ") + 1 :]
    kept = mask(kept.decode("utf-8", "replace")).encode()
    if kept != content:
        history.write_bytes(kept)


class PromptedInput:
    """Lines typed at a prompt, with history kept in a file that only its owner can read, secrets masked."""

    def __init__(self, history: Path, say: Callable[[str], None], mask: Callable[[str], str] = str) -> None:
        # Importing prompt_toolkit takes a quarter of a second, which only a terminal is worth.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        class MaskedHistory(FileHistory):
            def store_string(self, string: str) -> None:
                super().store_string(mask(string))

        past: History = InMemoryHistory()
        try:
            history.parent.mkdir(parents=True, exist_ok=True)
            history.touch(mode=0o600)
            _trim_history(history, mask)
            past = MaskedHistory(str(history))
        except OSError as error:
            say(f"What you type is not remembered after this session: {history}: {error.strerror}.")
        self._session: PromptSession[str] = PromptSession(history=past)
        self._say = say

    async def read(self) -> str | None:
        """Wait for the next line; None at Ctrl-D, or at the second Ctrl-C in a row at an empty prompt."""
        warned = False
        while True:
            try:
                return await self._session.prompt_async("> ")
            except EOFError:
                return None
            except KeyboardInterrupt:
                empty = not self._session.default_buffer.text
                if warned and empty:
                    return None
                warned = empty
                if empty:
                    self._say("Press Ctrl-C again, or Ctrl-D, to leave.")


class ConsoleChat:
    """One conversation with one person. `stoppable` is set where Ctrl-C is to end an answer and not the program."""

    def __init__(
        self, index: RepositoryIndex, assistant: Assistant, *, terminal: Terminal, lines: InputLines, stoppable: bool
    ) -> None:
        self._index = index
        self._assistant = assistant
        self._terminal = terminal
        self._lines = lines
        self._stoppable = stoppable
        self._thread = _make_thread()
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/reindex": self._reindex,
            "/status": self._status,
            "/new": self._start_new,
            "/help": self._help,
        }

    async def run(self) -> bool:
        """Take lines until there are no more; return whether every one of them was answered."""
        succeeded = True
        try:
            while (line := await self._lines.read()) is not None and line.strip() != "/quit":
                if line.strip():
                    succeeded &= await self._run_safely(self._respond(line.strip()))
        finally:
            await self._assistant.forget(self._thread)
        return succeeded

    async def _run_safely(self, work: Coroutine[None, None, None]) -> bool:
        """Do the work; report what goes wrong with a line, so that the next one can be taken."""
        try:
            if self._stoppable and not await run_until_interrupt(work):
                self._terminal.note("Stopped.")
            elif not self._stoppable:
                await work
        except (IndexerError, AgentError, BotError) as error:
            self._terminal.note(str(error))
            return False
        except Exception as error:  # the next line may fare better
            log.debug("A line was not handled.", exc_info=True)
            self._terminal.note(describe_unexpected(error))
            return False
        return True

    async def _respond(self, line: str) -> None:
        if not line.startswith("/"):
            await self._answer(line)
            return
        name, _, rest = line.partition(" ")
        command = self._commands.get(name)
        if command is None:
            raise BotError(
                f"There is no command {name[:40]}. /help lists them; a question does not begin with a slash."
            )
        await command(rest.strip())

    async def _answer(self, question: str) -> None:
        await refresh_if_stale(self._index, self._terminal)
        answer = await self._terminal.follow(self._assistant.ask(question, thread=self._thread))
        self._terminal.show(answer, Path((await self._index.status()).path))
        self._terminal.write("")
        if answer.route == "paused":
            self._terminal.note("(Your next line is the reply.)")

    async def _reindex(self, rest: str) -> None:
        if rest not in {"", "full"}:
            raise BotError("Write /reindex, or /reindex full to start from scratch.")
        report = await refresh_index(self._index, self._terminal, full=rest == "full")
        self._terminal.write(output.format_refresh_report(report, (await self._index.status()).repository))

    async def _status(self, _: str) -> None:
        self._terminal.write(output.format_status(await self._index.status()))

    async def _start_new(self, _: str) -> None:
        await self._assistant.forget(self._thread)
        self._thread = _make_thread()
        self._terminal.write("A new conversation.")

    async def _help(self, _: str) -> None:
        self._terminal.write(HELP)


def _set_line(line: asyncio.Future[bytes], data: bytes) -> None:
    if not line.done():
        line.set_result(data)


def _make_thread() -> str:
    return f"console:local:local:{uuid.uuid4().hex}"
