"""Completes commands, file paths and defined names when Tab is pressed at the prompt."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agent import CodeSearch
from bot.markdown import to_one_line
from indexer import IndexerError

_MOST = 20  # of each kind
_SHORTEST = 2  # letters of a name
_WORD = re.compile(r"[\w./\\:#$@-]{0,200}\Z")


class PromptCompleter(Completer):
    """Completes the word before the cursor; `commands` are those of the chat, each with what it does."""

    def __init__(self, commands: Mapping[str, str], pin: Callable[[], Awaitable[CodeSearch]]) -> None:
        self._commands = commands
        self._pin = pin

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Sequence[Completion]:  # noqa: ARG002
        """Offer nothing: the prompt asks for completions that may be waited for."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Offer commands as soon as a line begins with a slash, everything else when Tab asks."""
        before = document.text_before_cursor
        if before.startswith("/") and not any(map(str.isspace, before)):
            for name, what in self._commands.items():
                if name.startswith(before):
                    yield Completion(name, start_position=-len(before), display_meta=what)
            return
        word = find_word(before)
        if complete_event.completion_requested and len(word) >= _SHORTEST:
            for text in await self._find(word):
                yield Completion(text, start_position=-len(word), display=to_one_line(text))

    async def _find(self, word: str) -> Sequence[str]:
        try:
            code = await self._pin()
            names = await code.complete_name(word, limit=_MOST)
            paths = [file.path for file in await code.files()]
        except IndexerError:  # nothing is indexed yet: there is nothing to offer
            return ()
        return [*names, *match_paths(paths, word)]


def find_word(text: str) -> str:
    """Find the word at the end of a text that could be a path or a name."""
    found = _WORD.search(text[-200:])
    return found.group() if found else ""


def match_paths(paths: Sequence[str], word: str) -> Sequence[str]:
    """Choose the paths, or their next folders, that begin with a word; else the files whose names do."""
    folded = word.casefold()
    nearest = {
        path[: end + 1] if (end := path.find("/", len(word))) >= 0 else path
        for path in paths
        if path.casefold().startswith(folded)
    }
    named = [path for path in paths if path.rpartition("/")[2].casefold().startswith(folded)]
    return list(dict.fromkeys([*sorted(nearest), *sorted(named, key=lambda path: (len(path), path))]))[:_MOST]
