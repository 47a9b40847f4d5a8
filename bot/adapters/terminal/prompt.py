"""The prompt of the terminal: lines with completion and history, multi-line input with Alt-Enter."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from agent import CodeSearch
from bot.markdown import to_one_line
from bot.monitoring.logs import hold_log
from indexer import IndexerError

_LARGEST_HISTORY = 2**20  # bytes


class MaskedHistory(FileHistory):
    """A history in a file, with secrets masked."""

    def __init__(self, path: Path, mask: Callable[[str], str]) -> None:
        super().__init__(str(path))
        self._mask = mask

    def store_string(self, string: str) -> None:
        """Store a line."""
        super().store_string(self._mask(string))


def _open_history(path: Path, say: Callable[[str], None], mask: Callable[[str], str]) -> History:
    """Open a history readable only by its owner; if it cannot be kept, say so and remember only this session."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        _trim_history(path, mask)
    except OSError as error:
        say(f"Your input is not remembered after this session: {path}: {error.strerror}.")
        return InMemoryHistory()
    return MaskedHistory(path, mask)


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
    """Lines typed at a prompt, with history kept in a file, secrets masked."""

    def __init__(
        self,
        history: Path,
        say: Callable[[str], None],
        mask: Callable[[str], str] = str,
        completer: Completer | None = None,
    ) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_open_history(history, say, mask),
            completer=completer,
            complete_while_typing=Condition(self._is_command),
            key_bindings=_bind_keys(),
            prompt_continuation="  ",
            reserve_space_for_menu=6,
        )
        self._say = say

    def _is_command(self) -> bool:
        return self._session.default_buffer.text.startswith("/")

    async def read(self) -> str | None:
        """Wait for the next line; None at Ctrl-D, or at the second Ctrl-C in a row at an empty prompt."""
        warned = False
        while True:
            try:
                with hold_log():
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


def _bind_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


_MAX = 20  # of each kind
_MIN_LETTERS = 2  # letters of a name
_WORD = re.compile(r"[\w./\\:#$@-]{0,200}\Z")


class PromptCompleter(Completer):
    """Completes the word before the cursor; `commands` are the chat's, with their descriptions."""

    def __init__(self, commands: Mapping[str, str], pin: Callable[[], Awaitable[CodeSearch]]) -> None:
        self._commands = commands
        self._pin = pin

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Sequence[Completion]:  # noqa: ARG002
        """Offer nothing: the prompt requests completions asynchronously."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Offer commands as soon as a line begins with a slash, everything else after Tab."""
        before = document.text_before_cursor
        if before.startswith("/") and not any(map(str.isspace, before)):
            for name, what in self._commands.items():
                if name.startswith(before):
                    yield Completion(name, start_position=-len(before), display_meta=what)
            return
        word = find_word(before)
        if complete_event.completion_requested and len(word) >= _MIN_LETTERS:
            for text in await self._find(word):
                yield Completion(text, start_position=-len(word), display=to_one_line(text))

    async def _find(self, word: str) -> Sequence[str]:
        try:
            code = await self._pin()
            names = await code.complete_name(word, limit=_MAX)
            paths = [file.path for file in await code.files()]
        except IndexerError:  # nothing is indexed yet: there is nothing to offer
            return ()
        return [*names, *match_paths(paths, word)]


def find_word(text: str) -> str:
    """Return the word at the end of a text that could be a path or a name."""
    found = _WORD.search(text[-200:])
    return found.group() if found else ""


def match_paths(paths: Sequence[str], word: str) -> Sequence[str]:
    """Choose the paths, or their next folders, with a prefix; else the files whose names have it."""
    folded = word.casefold()
    nearest = {
        path[: end + 1] if (end := path.find("/", len(word))) >= 0 else path
        for path in paths
        if path.casefold().startswith(folded)
    }
    named = [path for path in paths if path.rpartition("/")[2].casefold().startswith(folded)]
    return list(dict.fromkeys([*sorted(nearest), *sorted(named, key=lambda path: (len(path), path))]))[:_MAX]
